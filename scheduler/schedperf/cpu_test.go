package schedperf_test

import (
	"os"
	"path/filepath"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/schedperf"
)

// burn returns the path of a CPU profile of this package's functions, which are Lockstep's.
func burn(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cpu.prof")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 200*time.Millisecond; {
		_, _ = schedperf.SchedulerConfig()
	}
	pprof.StopCPUProfile()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCPU_RefusesOtherThanOneProfile(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(t.TempDir(), "kept.prof")
	if _, _, err := schedperf.CPU(t.Context(), dir, kept); err == nil {
		t.Error("no profile: want an error")
	}
	for _, name := range []string{"a-cpu.prof", "b-cpu.prof"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := schedperf.CPU(t.Context(), dir, kept); err == nil {
		t.Error("two profiles: want an error")
	}
	if err := os.Remove(filepath.Join(dir, "b-cpu.prof")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := schedperf.CPU(t.Context(), dir, kept); err == nil {
		t.Error("an empty profile: want an error")
	}
}
