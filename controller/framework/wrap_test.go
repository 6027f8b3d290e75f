package framework_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
)

// shells are those of images: Debian's, Alpine's and Red Hat's, as far as this machine has them.
func shells() map[string][]string {
	found := map[string][]string{}
	for name, words := range map[string][]string{
		"dash": {"dash"}, "busybox": {"busybox", "sh"}, "bash": {"bash", "--posix"}, "sh": {"sh"},
	} {
		if _, err := exec.LookPath(words[0]); err == nil {
			found[name] = words
		}
	}
	return found
}

// wrapped returns a command behind the words of a framework's wrap, with another shell.
func wrapped(f framework.Framework, input framework.Input, shell []string, command ...string) []string {
	return slices.Concat(shell, f.Contribute(input).Wraps[0].Words[1:], command)
}

// boosting is a job of that many GPUs on each node.
func boosting(gpus int64) framework.Input {
	input := framework.Input{Job: "train", Nodes: 2, GPUs: gpus, JobCommand: []string{"/lockstep/per-gpu", "train"}}
	input.Policy.XGBoost = &trainerv1alpha1.XGBoostMLPolicySource{}
	return input
}

// node returns the second node of a job: a command, in a directory of its own, with workers that write to OUT.
func node(t *testing.T, words []string, env ...string) (command *exec.Cmd, out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	command = exec.CommandContext(t.Context(), words[0], words[1:]...)
	command.Dir = t.TempDir()
	command.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "CUDA_VISIBLE_DEVICES=")
	}), append([]string{"DMLC_TASK_ID=1", "OUT=" + out, "TMPDIR=" + t.TempDir()}, env...)...)
	return command, out
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	found := strings.Fields(string(text))
	slices.Sort(found)
	return found
}

func TestXGBoost_WorkersHaveTasksAndDevices(t *testing.T) {
	const say = `echo "$DMLC_TASK_ID/${CUDA_VISIBLE_DEVICES-none}/$(test "$1" = "a b" && test -e "data set" && echo intact)" >> "$OUT"`
	claimed, processes := boosting(0), int32(2)
	claimed.Processes = &processes
	for _, c := range []struct {
		name  string
		input framework.Input
		env   string
		want  []string
	}{
		{"four GPUs", boosting(4), "A=", []string{"4/0/intact", "5/1/intact", "6/2/intact", "7/3/intact"}},
		{"no GPUs", boosting(0), "A=", []string{"1/none/intact"}},
		{"processes on CPUs", claimed, "A=", []string{"2/none/intact", "3/none/intact"}},
		{"devices of the container", boosting(2), "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b", []string{"2/GPU-a/intact", "3/GPU-b/intact"}},
		{"hidden devices", boosting(2), "CUDA_VISIBLE_DEVICES=", []string{"2//intact", "3//intact"}},
		{"its own starter", boosting(2), "WORKERS_PER_NODE=1", []string{"1/none/intact"}},
	} {
		for name, shell := range shells() {
			t.Run(c.name+" "+name, func(t *testing.T) {
				command, out := node(
					t,
					wrapped(framework.XGBoost{}, c.input, shell, "sh", "-c", say, "worker", "a b"),
					c.env,
				)
				if err := os.WriteFile(filepath.Join(command.Dir, "data set"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				text, err := command.CombinedOutput()
				if got := lines(t, out); err != nil || len(text) > 0 || !slices.Equal(got, c.want) {
					t.Errorf("workers %v (%v, %s), want %v", got, err, text, c.want)
				}
			})
		}
	}
}

// A worker that fails must not leave the others waiting for it.
func TestXGBoost_FirstFailureEndsTheNode(t *testing.T) {
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			const fail = `test "$DMLC_TASK_ID" = 6 && sleep 0.3 && exit 7; echo up >> "$OUT"; exec sleep 600`
			command, out := node(t, wrapped(framework.XGBoost{}, boosting(4), shell, "sh", "-c", fail))
			err := command.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 7 || len(lines(t, out)) != 3 {
				t.Errorf("%v, want exit code 7 and three workers that were up, of %v", err, lines(t, out))
			}
		})
	}
}

// The SDK's command is a shell; its child trains. Both must get the signal, and the child may use the pod's grace.
func TestXGBoost_TerminationReachesEveryWorker(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "unshare", "-fp", "--mount-proc", "true").Run(); err != nil {
		t.Skipf("needs a PID namespace, as a container has: %v", err)
	}
	const worker = `sh -c 'trap "sleep 1; echo saved >> $OUT; exit 0" TERM; echo up >> "$OUT"; while :; do sleep 0.1; done'; echo survived >> "$OUT"`
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			words := append([]string{"unshare", "-fp", "--mount-proc"},
				wrapped(framework.XGBoost{}, boosting(3), shell, "bash", "-c", worker)...)
			command, out := node(t, words)
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() bool { return len(lines(t, out)) == 3 })
			children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", command.Process.Pid))
			var first int
			if _, scan := fmt.Sscan(string(children), &first); err != nil || scan != nil {
				t.Fatal(err, scan)
			}
			if err = syscall.Kill(first, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			err = command.Wait()
			var exit *exec.ExitError
			if want := []string{"saved", "saved", "saved", "up", "up", "up"}; !errors.As(err, &exit) ||
				exit.ExitCode() != 143 || !slices.Equal(lines(t, out), want) {
				t.Errorf("%v, %v, want exit code 143 and %v", err, lines(t, out), want)
			}
		})
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for range 200 {
		if holds() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("did not happen within 10 s")
}

// The command of SDK 0.5.0's CustomTrainer writes its program into the working directory and runs it. Rounds share the
// directory, so that later ones find the program of earlier ones, as on a volume.
func TestXGBoost_WorkersOfTheSDKDoNotTruncateEachOther(t *testing.T) {
	program := strings.Repeat("# a long function\n", 5000) + `echo "$DMLC_TASK_ID" >> "$OUT"` + "\n"
	command := "\nread -r -d '' SCRIPT << EOM\n\n" + program + "\nEOM\nprintf \"%s\" \"$SCRIPT\" > \"train.py\"\npython \"train.py\""
	command = strings.ReplaceAll(command, "$DMLC_TASK_ID", `\$DMLC_TASK_ID`)
	command = strings.ReplaceAll(command, "$OUT", `\$OUT`)
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "python"), []byte("#!/bin/sh\nexec sh \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for round := range 40 {
		started, out := node(t, wrapped(framework.XGBoost{}, boosting(4), []string{"sh"}, "bash", "-c", command),
			"PATH="+bin+":"+os.Getenv("PATH"))
		started.Dir = dir
		text, err := started.CombinedOutput()
		if got := lines(t, out); err != nil || !slices.Equal(got, []string{"4", "5", "6", "7"}) {
			t.Fatalf("round %d: %v trained (%v, %s)", round, got, err, text)
		}
	}
}

// launching returns a job with a launcher that waits for the hosts of a file of its own.
func launching(t *testing.T, shell []string, hosts, seconds string, command ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hostfile")
	if err := os.WriteFile(file, []byte(hosts), 0o600); err != nil {
		t.Fatal(err)
	}
	input := framework.Input{Job: "mpi"}
	input.Policy.MPI = &trainerv1alpha1.MPIMLPolicySource{}
	words := wrapped(framework.MPI{}, input, shell, command...)
	at := slices.Index(words, "/etc/mpi/hostfile")
	words[at-1], words[at] = seconds, file
	return words
}

// resolver is a getent that knows the names that are files of a directory.
func resolver(t *testing.T) (bin, names string) {
	t.Helper()
	bin, names = t.TempDir(), t.TempDir()
	text := "#!/bin/sh\ntouch '" + names + "/asked'\ncat '" + names + "'/\"$2\" 2> /dev/null\n"
	if err := os.WriteFile(filepath.Join(bin, "getent"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return bin, names
}

func publish(t *testing.T, names, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(names, name), []byte("10.0.0.7      "+name+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestMPI_LauncherWaitsForAllNames(t *testing.T) {
	const launcher, worker = "mpi-launcher-0-0.mpi", "mpi-node-0-0.mpi"
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			bin, names := resolver(t)
			words := launching(
				t,
				shell,
				launcher+" slots=1\n"+worker+" slots=1\n",
				"60",
				"sh",
				"-c",
				`echo "$1" >> "$OUT"`,
				"mpirun",
				"started",
			)
			command, out := node(t, words, "PATH="+bin+":"+os.Getenv("PATH"), "HOSTNAME=mpi-launcher-0-0")
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			// DNS would cache for half a minute that a name which is resolved too early is not known.
			time.Sleep(time.Second)
			if _, err := os.Stat(filepath.Join(names, "asked")); err == nil {
				t.Error("a name is asked for in the first second")
			}
			for _, host := range []string{launcher, worker} {
				time.Sleep(300 * time.Millisecond)
				if got := lines(t, out); len(got) > 0 {
					t.Fatalf("%v before %s resolves", got, host)
				}
				publish(t, names, host)
			}
			published := time.Now()
			if err := command.Wait(); err != nil || !slices.Equal(lines(t, out), []string{"started"}) {
				t.Errorf("%v, %v, want it started once", err, lines(t, out))
			}
			if took := time.Since(published); took > 5*time.Second {
				t.Errorf("started %s after the last name", took)
			}
		})
	}
}

func TestMPI_WaitIsBoundedAndCanBeTerminated(t *testing.T) {
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			bin, _ := resolver(t)
			for seconds, want := range map[string]int{"1": 0, "600": 143} {
				command, out := node(
					t,
					launching(t, shell, "absent.mpi slots=1\n", seconds, "sh", "-c", `echo started >> "$OUT"`),
					"PATH="+bin+":"+os.Getenv("PATH"),
				)
				var errors bytes.Buffer
				command.Stderr = &errors
				if err := command.Start(); err != nil {
					t.Fatal(err)
				}
				if want != 0 {
					time.Sleep(300 * time.Millisecond)
					if err := command.Process.Signal(syscall.SIGTERM); err != nil {
						t.Fatal(err)
					}
				}
				_ = command.Wait()
				said := strings.Contains(errors.String(), "absent.mpi does not resolve after 1 s")
				if code := command.ProcessState.ExitCode(); code != want || said != (want == 0) ||
					len(lines(t, out)) == want {
					t.Errorf(
						"limit %s s: code %d, want %d; %q; ran %v",
						seconds,
						code,
						want,
						errors.String(),
						lines(t, out),
					)
				}
			}
		})
	}
}

// Kubernetes expands $(NAME) and halves two dollar signs in commands before a shell sees them.
func TestWrap_KubernetesLeavesScriptsAlone(t *testing.T) {
	reference := regexp.MustCompile(`\$\$|\$\([-._a-zA-Z0-9]+\)`)
	for _, words := range [][]string{
		wrapped(framework.XGBoost{}, boosting(4), nil), launching(t, nil, "", "1"),
	} {
		for _, word := range words {
			if found := reference.FindString(word); found != "" {
				t.Errorf("%s would be replaced in %s", found, word)
			}
		}
	}
}
