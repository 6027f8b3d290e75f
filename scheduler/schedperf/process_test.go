package schedperf_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/scheduler/schedperf"
)

// standIn leaves a process behind, as a benchmark that fails leaves its etcd, and says in its log how it was run.
const standIn = `#!/bin/sh
sleep 600 &
echo $! > "$LEFT"
for arg in "$@"; do
  case "$arg" in
  -figures=*) echo '{"seconds": 2, "attempts": 7}' > "${arg#-figures=}" ;;
  -config=*) cat "${arg#-config=}" ;;
  -data-items-dir=*) mkdir -p "${arg#*=}"; cp "$PROFILE" "${arg#*=}/case_w-cpu.prof" ;;
  esac
done
echo "$*"; pwd; command -v etcd
exit $CODE
`

func TestProcess(t *testing.T) {
	kubernetes, bin, logs, left := t.TempDir(), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "left")
	dir := filepath.Join(kubernetes, "test", "integration", "scheduler_perf", "a", "b")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		filepath.Join(dir, "performance-config.yaml"): "[{name: case, workloads: [{name: w, params: {pods: 5}}]}]",
		filepath.Join(bin, "measure"):                 standIn,
		filepath.Join(bin, "etcd"):                    "",
	} {
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("LEFT", left)
	t.Setenv("PROFILE", burn(t))
	t.Setenv("TMPDIR", t.TempDir())
	process := schedperf.Process{Kubernetes: kubernetes, Bin: bin, Logs: logs}
	w := schedperf.Workload{Dir: "a/b", Case: "case", Name: "w", Measured: []string{"pods"}}

	t.Setenv("CODE", "0")
	got, err := process.Measure(t.Context(), w, schedperf.Lockstep, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got.SchedulerCPUPerPod <= 0 || got.CPUPerPod < got.SchedulerCPUPerPod {
		t.Errorf("a pod costs %v ms, %v of it in the scheduler", got.CPUPerPod, got.SchedulerCPUPerPod)
	}
	got.CPUPerPod, got.SchedulerCPUPerPod = 0, 0
	if diff := cmp.Diff(schedperf.Figures{PodsPerSecond: 2.5, Seconds: 2, Attempts: 7}, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(logs, "case_w-lockstep-1.prof")); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(filepath.Join(logs, "case_w-lockstep-1.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"-lockstep=true", "-pods=false", "-perf-cpuprofile ", "schedulerConfigPath: ", dir + "\n", filepath.Join(bin, "etcd") + "\n",
	} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the run does not have %q:\n%s", want, log)
		}
	}
	wantGone(t, left)

	t.Setenv("CODE", "1")
	if _, err := process.Measure(t.Context(), w, schedperf.Native, 2); err == nil ||
		!strings.Contains(err.Error(), "case_w-native-2.log") {
		t.Errorf("a run that failed: the error is %v", err)
	}
	wantGone(t, left)
	if rest, _ := os.ReadDir(os.Getenv("TMPDIR")); len(rest) > 0 {
		t.Errorf("left in the temporary folder: %v", rest)
	}
}

// wantGone fails if the process whose id is in the file does not end.
func wantGone(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		// A process that no parent waits for stays, as a zombie, where no init collects it.
		stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d was left running", pid)
}
