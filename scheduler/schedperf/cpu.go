package schedperf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// schedulerFrames matches the functions of kube-scheduler and of Lockstep's plugins.
const schedulerFrames = `^k8s\.io/kubernetes/pkg/scheduler|^github\.com/lockstep-project/lockstep/`

// shown is the line in which go tool pprof prints the CPU time of the filtered samples, and of all samples.
var shown = regexp.MustCompile(`Showing nodes accounting for ([0-9.]+)(?:ms)?, .* of ([0-9.]+)ms total`)

// CPU reads the CPU time, in milliseconds, of the one profile that scheduler_perf left in the folder, and copies the
// profile to kept. The profile covers the measured seconds only. all is the time of the process: scheduler, API server,
// controllers and benchmark, without etcd. scheduler is the time of the goroutines that run kube-scheduler's or
// Lockstep's functions; it lacks garbage collection and the decoding of watch events.
func CPU(ctx context.Context, dir, kept string) (all, scheduler float64, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*-cpu.prof"))
	if err != nil || len(paths) != 1 {
		return 0, 0, errors.Join(fmt.Errorf("scheduler_perf left %d CPU profiles", len(paths)), err)
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		return 0, 0, fmt.Errorf("reading the CPU profile: %w", err)
	}
	if err := os.WriteFile(kept, content, 0o600); err != nil {
		return 0, 0, fmt.Errorf("copying the CPU profile: %w", err)
	}
	top := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-unit=ms", "-symbolize=none", "-nodecount=1000000",
		"-nodefraction=0", "-focus="+schedulerFrames, kept)
	out, err := top.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("reading the CPU profile %s with go tool pprof: %w", kept, err)
	}
	return parseTop(string(out))
}

func parseTop(out string) (all, scheduler float64, err error) {
	found := shown.FindStringSubmatch(out)
	if found == nil {
		return 0, 0, errors.New("go tool pprof printed no total")
	}
	scheduler, err = strconv.ParseFloat(found[1], 64)
	if err != nil {
		return 0, 0, fmt.Errorf("parsing the CPU time of the scheduler: %w", err)
	}
	all, err = strconv.ParseFloat(found[2], 64)
	if err != nil {
		return 0, 0, fmt.Errorf("parsing the CPU time of the process: %w", err)
	}
	return all, scheduler, nil
}
