// Command bench-schedperf compares kube-scheduler's own profile and Lockstep's on workloads of Kubernetes'
// scheduler_perf.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/schedperf"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench-schedperf", flag.ContinueOnError)
	dir := flags.String("dir", "out/bench", "folder that holds bin/measure and bin/etcd and gets logs and results")
	set := flags.String("rows", "all", "gangs, ordinary (pods without gangs), quick (ordinary on 500 nodes) or all")
	pattern := flags.String("workloads", "", "regular expression that the workloads to run match")
	runs := flags.Int("runs", 3, "how often each workload is run with each profile, if the time allows")
	budget := flags.Duration(
		"budget",
		55*time.Minute,
		"time for all runs; each workload is run at least once all the same",
	)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	workloads, err := pick(*set, *pattern)
	if err != nil {
		return err
	}
	kubernetes, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return fmt.Errorf("finding the module k8s.io/kubernetes: %w", err)
	}
	base, err := filepath.Abs(*dir)
	if err != nil {
		return fmt.Errorf("finding %s: %w", *dir, err)
	}
	logs := filepath.Join(base, "schedperf-logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("making the folder of logs: %w", err)
	}
	process := schedperf.Process{
		Kubernetes: strings.TrimSpace(string(kubernetes)), Bin: filepath.Join(base, "bin"), Logs: logs,
	}
	rounds := schedperf.Rounds{
		Count: *runs, Budget: *budget, Clock: clock.RealClock{}, Measure: process.Measure, Progress: out,
	}
	records, failed := rounds.Run(ctx, workloads)
	return errors.Join(
		failed,
		schedperf.WriteTable(out, records),
		schedperf.WriteSummary(out, records),
		schedperf.WriteFile(filepath.Join(base, "schedperf.json"), records),
	)
}

func pick(set, pattern string) ([]schedperf.Workload, error) {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("reading -workloads: %w", err)
	}
	rows, err := schedperf.Rows(set)
	if err != nil {
		return nil, fmt.Errorf("reading -rows: %w", err)
	}
	workloads := slices.DeleteFunc(rows, func(w schedperf.Workload) bool { return !wanted.MatchString(w.String()) })
	if len(workloads) == 0 {
		return nil, fmt.Errorf("no workload of -rows %s matches %q", set, pattern)
	}
	return workloads, nil
}
