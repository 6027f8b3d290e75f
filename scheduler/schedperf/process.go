package schedperf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Process runs a workload in a process of its own.
type Process struct {
	// Kubernetes is the folder of the module k8s.io/kubernetes.
	Kubernetes string
	// Bin is the absolute path of the folder with the executables etcd and measure, the test binary of package measure.
	Bin string
	// Logs is the existing folder that gets one log and one CPU profile per run.
	Logs string
}

// Measure runs the workload once, in a temporary folder, which also holds etcd's data. An error names the log.
func (p Process) Measure(ctx context.Context, w Workload, profile Profile, round int) (figures Figures, err error) {
	name := fmt.Sprintf("%s-%s-%d.log", strings.ReplaceAll(w.String(), "/", "_"), profile, round)
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w (see %s)", err, name)
		}
	}()
	temporary, err := os.MkdirTemp("", "schedperf-")
	if err != nil {
		return figures, fmt.Errorf("making a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	dir := filepath.Join(p.Kubernetes, "test", "integration", "scheduler_perf", filepath.FromSlash(w.Dir))
	config, pods, err := configure(filepath.Join(dir, "performance-config.yaml"), temporary, w, profile)
	if err != nil {
		return figures, err
	}
	log, err := os.Create(filepath.Join(p.Logs, name))
	if err != nil {
		return figures, fmt.Errorf("making a log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	result, items := filepath.Join(temporary, "figures.json"), filepath.Join(temporary, "items")
	child := exec.CommandContext(ctx, filepath.Join(p.Bin, "measure"),
		"-test.run=^$", "-test.bench=.", "-test.benchtime=1x", "-test.timeout=30m", "-perf-scheduling-label-filter=",
		"-data-items-dir="+items, "-perf-cpuprofile", "-config="+config, "-figures="+result,
		fmt.Sprintf("-lockstep=%t", profile == Lockstep), fmt.Sprintf("-pods=%t", w.Pods), "-allocator="+w.Allocator)
	// Paths of templates are relative to the configuration that they are from.
	child.Dir = dir
	child.Env = append(os.Environ(), "PATH="+p.Bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"TMPDIR="+temporary, "KUBE_CACHE_MUTATION_DETECTOR=false")
	child.Stdout, child.Stderr = log, log
	if err := runGroup(child); err != nil {
		return figures, err
	}
	content, err := os.ReadFile(result)
	if err != nil {
		return figures, fmt.Errorf("reading the figures: %w", err)
	}
	if err := json.Unmarshal(content, &figures); err != nil {
		return figures, fmt.Errorf("parsing the figures: %w", err)
	}
	figures.PodsPerSecond = float64(pods) / figures.Seconds
	all, scheduler, err := CPU(ctx, items, filepath.Join(p.Logs, strings.TrimSuffix(name, ".log")+".prof"))
	if err != nil {
		return figures, err
	}
	figures.CPUPerPod, figures.SchedulerCPUPerPod = all/float64(pods), scheduler/float64(pods)
	return figures, nil
}

// configure writes the inputs of the run into dir and returns the path of its configuration, and the number of measured
// pods.
func configure(upstream, dir string, w Workload, profile Profile) (path string, pods int, err error) {
	content, err := os.ReadFile(upstream)
	if err != nil {
		return "", 0, fmt.Errorf("reading scheduler_perf's configuration: %w", err)
	}
	scheduler := ""
	if profile == Lockstep {
		own, err := SchedulerConfig()
		if err != nil {
			return "", 0, err
		}
		scheduler = filepath.Join(dir, "scheduler.yaml")
		if err := os.WriteFile(scheduler, own, 0o600); err != nil {
			return "", 0, fmt.Errorf("writing the profile: %w", err)
		}
	}
	if content, pods, err = Derive(content, w, scheduler); err != nil {
		return "", 0, err
	}
	path = filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", 0, fmt.Errorf("writing the configuration: %w", err)
	}
	return path, pods, nil
}

// runGroup runs the command and ends whatever it leaves behind: a test that fails or times out does not stop its etcd.
func runGroup(child *exec.Cmd) error {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
	err := child.Run()
	if child.Process != nil {
		_ = syscall.Kill(-child.Process.Pid, syscall.SIGKILL) // usually no process is left
	}
	if err != nil {
		return fmt.Errorf("running scheduler_perf: %w", err)
	}
	return nil
}
