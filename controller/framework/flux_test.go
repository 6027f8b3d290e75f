package framework_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
)

// The tests run Flux's scripts with a flux that records its calls. Its start runs its arguments, its run drops its own
// options and runs the rest, and a broker without a program fails as often as the number in the file failures.
const fakeFlux = `#!/bin/bash
here=$FAKE_DIR
printf '<%s>' "$@" >>"$here/calls"; echo >>"$here/calls"
echo "$1 ${PYTHONPATH-none}" >>"$here/python-paths"
case $1 in
R) echo "resources: $*" ;;
start)
  shift
  while [[ ${1-} == --broker-opts=* ]]; do shift; done
  if [[ $# -gt 0 ]]; then exec "$@"; fi
  if [[ -e $here/hang ]]; then trap 'echo stopped >>"$here/calls"; kill $!; exit 1' TERM; touch "$here/hangs"; sleep 60 & wait $!; fi
  left=$(cat "$here/failures" 2>/dev/null || echo 0)
  echo $((left - 1)) >"$here/failures"
  [[ $left -le 0 ]]
  ;;
run)
  shift
  while true; do
    case $1 in
    -N | -n | -g | -o) shift 2 ;;
    --env-remove=*) unset "${1#*=}"; shift ;;
    --env=*) export "${1#*=}"; shift ;;
    *) break ;;
    esac
  done
  exec "$@"
  ;;
esac
`

// fakeTask is the user's program: it writes down its arguments, one to a line, and its python path.
const fakeTask = `#!/bin/bash
printf '%s\n' "$@" >"$FAKE_DIR/arguments"
echo "${PYTHONPATH-none}" >"$FAKE_DIR/task-python-path"
exit "${FAKE_EXIT-0}"
`

// fluxPod is a pod with its volumes in a folder.
type fluxPod struct {
	t   *testing.T
	dir string
	env []string
	// files are the scripts, command follows the entrypoint's name.
	files   map[string]string
	command string
}

func fluxInput() framework.Input {
	return framework.Input{
		Job: "train", Namespace: "team-a", Subdomain: "train", Nodes: 2,
		Processes: new(int32(4)),
		Policy:    trainerv1alpha1.MLPolicySource{Flux: &trainerv1alpha1.FluxMLPolicySource{}},
		Roles:     []framework.Role{{Name: "node", Trains: true, Containers: []string{"node"}, Replicas: 1, Pods: 2}},
	}
}

// newFluxPod makes the pod of a host, and runs its init container.
func newFluxPod(t *testing.T, input framework.Input, host string) *fluxPod {
	t.Helper()
	contribution := framework.Flux{}.Contribute(input)
	dir := t.TempDir()
	p := &fluxPod{
		t: t, dir: dir, files: contribution.Files[0].Data, command: contribution.Command[2],
		env: []string{
			"FAKE_DIR=" + dir, "PATH=" + dir + "/bin:" + os.Getenv("PATH"), "HOME=/home/me",
			"LOCKSTEP_FLUX_ROOT=" + dir + "/mnt", "LOCKSTEP_FLUX_CURVE=" + dir + "/curve",
			"LOCKSTEP_FLUX_RETRY_SECONDS=0",
		},
	}
	p.write("image/software/linux/gcc/flux-core-1/bin/flux", fakeFlux)
	p.write("image/software/linux/gcc/flux-sched-1/etc/flux/rc1.d/load", "")
	p.write("image/views/real/lib/python3.11/site-packages/flux.py", "")
	p.write("image/views/real/bin/.keep", "")
	p.write("bin/hostname", "#!/bin/bash\necho "+host+"\n")
	p.write("bin/task", fakeTask)
	p.write("curve/curve.cert", "certificate")
	p.link("../../../../software/linux/gcc/flux-core-1/bin/flux", "image/views/real/bin/flux")
	p.link("real", "image/views/view")
	p.link("views/view", "image/view")
	for name, text := range p.files {
		p.write(name, text)
	}
	out, err := p.bash("init.sh", "LOCKSTEP_FLUX_VIEW="+dir+"/image/view", "LOCKSTEP_FLUX_SOFTWARE="+dir+"/image/software").
		CombinedOutput()
	if err != nil {
		t.Fatalf("init.sh: %v\n%s", err, out)
	}
	// In a pod the links lead to /opt/software; here they lead to its stand-in, which the entrypoint fills.
	if err := os.Remove(filepath.Join(dir, "mnt/view/bin/flux")); err != nil {
		t.Fatal(err)
	}
	p.link(dir+"/opt/linux/gcc/flux-core-1/bin/flux", "mnt/view/bin/flux")
	if err := os.Mkdir(filepath.Join(dir, "opt"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "LOCKSTEP_FLUX_SOFTWARE="+dir+"/opt")
	return p
}

func (p *fluxPod) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *fluxPod) link(to, name string) {
	p.t.Helper()
	if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

// read returns a file's text, with the pod's folder as DIR; "" if there is none.
func (p *fluxPod) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), p.dir, "DIR")
}

// bash is a script of the pod's with one argument, the command; it is killed when the test takes too long.
func (p *fluxPod) bash(script string, env ...string) *exec.Cmd {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	p.t.Cleanup(cancel)
	command := exec.CommandContext(ctx, "/bin/bash", filepath.Join(p.dir, script), p.command)
	command.Env = slices.Concat(p.env, env)
	return command
}

// start runs the entrypoint to its end, and returns its exit code.
func (p *fluxPod) start(env ...string) int {
	p.t.Helper()
	command := p.bash("entrypoint.sh", env...)
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("%v\n%s", err, out)
	}
	p.t.Logf("%s", bytes.TrimSpace(out))
	return command.ProcessState.ExitCode()
}

// brokerOptions is the command line by which every broker is started.
const brokerOptions = "<start><--broker-opts=--config-path=DIR/mnt/config/etc/flux/config>" +
	"<--broker-opts=-Stbon.fanout=256><--broker-opts=-Srundir=DIR/mnt/config/run/flux>" +
	"<--broker-opts=-Sstatedir=DIR/mnt/config/var/lib/flux>" +
	"<--broker-opts=-Slocal-uri=local://DIR/mnt/config/run/flux/local>"

func TestFlux_ScriptsAreBash(t *testing.T) {
	scripts := framework.Flux{}.Contribute(fluxInput()).Files[0].Data
	for name, text := range scripts {
		command := exec.CommandContext(t.Context(), "/bin/bash", "-n")
		command.Stdin = strings.NewReader(text)
		if out, err := command.CombinedOutput(); err != nil || !strings.HasPrefix(text, "#!/bin/bash\n") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestFlux_Configuration(t *testing.T) {
	input := fluxInput()
	input.Subdomain = "nodes"
	input.RuntimeEnv = []corev1.EnvVar{{Name: "FLUX_NETWORK_DEVICE", Value: "eth1"}}
	p := newFluxPod(t, input, "train-node-0-0")
	want := `# The brokers of TrainJob team-a/train.
[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "DIR/mnt/config/etc/flux/system/R"

[bootstrap]
curve_cert = "DIR/mnt/config/etc/curve/curve.cert"
default_port = 8050
default_bind = "tcp://eth1:%p"
default_connect = "tcp://%h.nodes.team-a.svc.cluster.local:%p"
hosts = [ { host = "train-node-0-[0-1]" } ]

[archive]
dbpath = "DIR/mnt/config/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = "fcfs"
`
	if diff := cmp.Diff(want, p.read("mnt/config/etc/flux/config/broker.toml")); diff != "" {
		t.Errorf("broker.toml (-want +got):\n%s", diff)
	}
	if got := p.read("mnt/config/etc/hostlist"); got != "train-node-0-[0-1]\n" {
		t.Errorf("hostlist %q", got)
	}
}

func TestFlux_FirstHostRunsTheCommand(t *testing.T) {
	input := fluxInput()
	input.GPUs = 8
	input.JobCommand, input.Args = []string{"task"}, []string{"-v", "x"}
	p := newFluxPod(t, input, "train-node-0-0")
	if code := p.start("FAKE_EXIT=7"); code != 7 {
		t.Errorf("exit %d, want the command's 7", code)
	}
	run := "<run><-N><2><-n><8><-g><2><--env-remove=PYTHONPATH><task><-v><x>"
	want := "<R><encode><--hosts=train-node-0-[0-1]><--cores=0-3><--gpus=0-7>\n" +
		brokerOptions + "<DIR/mnt/view/bin/flux>" + run + "\n" + run + "\n"
	if diff := cmp.Diff(want, p.read("calls")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if got := p.read("mnt/config/etc/flux/system/R"); !strings.HasPrefix(got, "resources: R encode") {
		t.Errorf("R is %q", got)
	}
	certificate := filepath.Join(p.dir, "mnt/config/etc/curve/curve.cert")
	if stat, err := os.Stat(certificate); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("the certificate: %v, %v", stat, err)
	}
	if view := p.read(
		"mnt/flux-view.sh",
	); !strings.Contains(
		view,
		`fluxsocket="local://DIR/mnt/config/run/flux/local"`,
	) {
		t.Errorf("flux-view.sh does not say where the broker is:\n%s", view)
	}
}

// A task gets its arguments as the job's author wrote them, whatever their meaning in a shell.
func TestFlux_PreservesArguments(t *testing.T) {
	for name, args := range map[string][]string{
		"plain":     {"-v", "--lr=1e-4", "a/b.c:d", "x=1,y=2", "50%", "@file"},
		"blanks":    {"two words", " ", "", "a\tb", "a\nb"},
		"quotes":    {`it's`, `"said"`, `'`, `\`, `a\ b`},
		"expansion": {"$HOME", "${HOME}", "$(id)", "`id`", "~", "a=~/b", "$((1+1))"},
		"globs":     {"*", "?", "[a-z]*", "{a,b}", "{1..3}", "@(a|b)"},
		"control":   {";", "a;touch x", "&", "&&", "|", ">", "<x", "(", ")", "#no", "a#b", "!", "!!"},
		"other":     {"größe", "é*", "-n", "--", "\x01"},
	} {
		t.Run(name, func(t *testing.T) {
			input := fluxInput()
			input.JobCommand, input.Args = []string{"task"}, args
			p := newFluxPod(t, input, "train-node-0-0")
			if code := p.start(); code != 0 {
				t.Errorf("exit %d", code)
			}
			if diff := cmp.Diff(strings.Join(args, "\n")+"\n", p.read("arguments")); diff != "" {
				t.Errorf("arguments (-want +got), from %s:\n%s", p.command, diff)
			}
		})
	}
}

// Flux's commands are python with packages of their own. The job's python must not get them.
func TestFlux_SeparatesPythonPaths(t *testing.T) {
	for name, test := range map[string]struct {
		env              []string
		wantFlux, wantIt string
	}{
		"none": {wantFlux: "DIR/mnt/view/lib/python3.11/site-packages", wantIt: "none"},
		"own": {
			env: []string{"PYTHONPATH=/a b:/c"}, wantFlux: "/a b:/c:DIR/mnt/view/lib/python3.11/site-packages", wantIt: "/a b:/c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			input := fluxInput()
			input.JobCommand = []string{"task"}
			p := newFluxPod(t, input, "train-node-0-0")
			p.start(test.env...)
			if got := p.read("python-paths"); !strings.HasPrefix(got, "R "+test.wantFlux+"\n") {
				t.Errorf("flux has\n%s, want %s", got, test.wantFlux)
			}
			if got := p.read("task-python-path"); got != test.wantIt+"\n" {
				t.Errorf("the task has %q, want %q", got, test.wantIt)
			}
		})
	}
}

func TestFlux_OtherHostsRetryUntilDone(t *testing.T) {
	input := fluxInput()
	input.JobCommand = []string{"task"}
	p := newFluxPod(t, input, "train-node-0-1")
	p.write("failures", "2")
	if code := p.start(); code != 0 {
		t.Errorf("exit %d", code)
	}
	calls := strings.Split(strings.TrimSpace(p.read("calls")), "\n")[1:]
	if want := []string{brokerOptions, brokerOptions, brokerOptions}; !slices.Equal(calls, want) {
		t.Errorf("calls %v, want %v", calls, want)
	}
	if got := p.read("arguments"); got != "" {
		t.Errorf("the command ran with %q", got)
	}
}

func TestFlux_OtherHostsStopOnSignal(t *testing.T) {
	p := newFluxPod(t, fluxInput(), "train-node-0-1")
	p.write("hang", "")
	command := p.bash("entrypoint.sh")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := os.Stat(filepath.Join(p.dir, "hangs")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); command.ProcessState.ExitCode() != 143 {
		t.Errorf("%v, want exit 143", err)
	}
	if got := p.read("calls"); !strings.HasSuffix(got, "stopped\n") {
		t.Errorf("the broker was not told:\n%s", got)
	}
}

func TestFlux_WithoutCommandWaitsForUsers(t *testing.T) {
	p := newFluxPod(t, fluxInput(), "train-node-0-0")
	if code := p.start(); code != 0 {
		t.Errorf("exit %d", code)
	}
	want := "<R><encode><--hosts=train-node-0-[0-1]><--cores=0-3>\n" + brokerOptions + "<--broker-opts=-Sbroker.rc2_none=1>\n"
	if diff := cmp.Diff(want, p.read("calls")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// A restarted container has the files that the first one left.
func TestFlux_ContainerRestarts(t *testing.T) {
	input := fluxInput()
	input.JobCommand, input.Args = []string{"task"}, []string{"x"}
	p := newFluxPod(t, input, "train-node-0-0")
	p.start("FAKE_EXIT=1")
	p.write("mnt/config/var/lib/flux/content.sqlite", "the first one's jobs")
	if code := p.start(); code != 0 || p.read("arguments") != "x\n" {
		t.Errorf("exit %d, arguments %q", code, p.read("arguments"))
	}
	if p.read("mnt/config/var/lib/flux/content.sqlite") != "" {
		t.Error("the second broker would go on with the first one's jobs")
	}
}

// Words without a meaning in a shell are joined as upstream joins them.
func TestFlux_JoinsCommandLikeUpstream(t *testing.T) {
	for name, test := range map[string]struct {
		command, args, runtimeCommand, runtimeArgs []string
		want                                       string
	}{
		"none":                           {},
		"the job's":                      {command: []string{"lmp", "-v"}, args: []string{"x", "2"}, want: "lmp -v x 2"},
		"the runtime's":                  {runtimeCommand: []string{"a"}, runtimeArgs: []string{"b"}, want: "a b"},
		"own arguments":                  {args: []string{"c"}, runtimeCommand: []string{"a"}, runtimeArgs: []string{"b"}, want: "a c"},
		"no arguments, said":             {args: []string{}, runtimeCommand: []string{"a"}, runtimeArgs: []string{"b"}, want: "a"},
		"own command":                    {command: []string{"c"}, runtimeCommand: []string{"a"}, runtimeArgs: []string{"b"}, want: "c"},
		"no command, said":               {command: []string{}, runtimeCommand: []string{"a"}, runtimeArgs: []string{"b"}},
		"quoted only where it is needed": {command: []string{"a", "b c", "d"}, want: "a 'b c' d"},
	} {
		t.Run(name, func(t *testing.T) {
			input := fluxInput()
			input.JobCommand, input.Args = test.command, test.args
			input.Command, input.RuntimeArgs = test.runtimeCommand, test.runtimeArgs
			want := []string{"/bin/bash", "/etc/flux-config/entrypoint.sh", test.want}
			if diff := cmp.Diff(want, framework.Flux{}.Contribute(input).Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}
}
