// Package testcluster brings up the embedded cluster on which all tests of a package run, and plays TrainJobs on it as
// lockstep up does.
package testcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/liverun"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// Cluster is a cluster, and the machines that it was started with.
type Cluster struct {
	*cluster.Cluster

	Machines fleet.Fleet
}

// Setting configures a cluster.
type Setting struct {
	// Name is the name of the tests in output, Machines the fleet, by name or by file.
	Name, Machines string
	// Options are those of the cluster; its folder, nodes and devices are filled in.
	Options cluster.Options
	// Regates is set if the API server is started again. Until it has read the roles, it refuses all requests of
	// components.
	Regates bool
	// Excuses reports whether a refusal in a log is due to the test, such as one of a release under the roles of
	// another; nil excuses none.
	Excuses func(line string) bool
	// Check examines the cluster when all tests have passed; nil for nothing.
	Check func(Cluster) error
	Out   io.Writer
}

func (s Setting) print(line string) { _, _ = fmt.Fprintln(s.Out, s.Name+": "+line) }

// Run brings a cluster up, hands it to the tests, runs them and takes it down again. It returns the exit code of the
// tests, or 1 if a component was refused something by its roles or panicked. The logs are retained then.
func Run(ctx context.Context, m *testing.M, setting Setting, use func(Cluster)) int {
	log.SetLogger(klog.NewKlogr()) // or controller-runtime prints a stack to say that it is not set
	dir, err := os.MkdirTemp("", "lockstep-"+setting.Name+"-")
	if err != nil {
		setting.print(err.Error())
		return 1
	}
	setting.Options.Dir, setting.Options.Report = filepath.Join(dir, "state"), setting.print
	stage, err := open(ctx, setting)
	if err != nil {
		setting.print(err.Error())
		return 1
	}
	use(stage)
	code := m.Run()
	if code == 0 {
		code = stage.complaints(setting)
	}
	if code == 0 && setting.Check != nil {
		if err := setting.Check(stage); err != nil {
			setting.print(err.Error())
			code = 1
		}
	}
	stage.Stop(ctx)
	if code != 0 {
		setting.print("the logs are in " + filepath.Join(setting.Options.Dir, "logs"))
		return code
	}
	_ = os.RemoveAll(dir)
	return 0
}

// Main is Run for a package whose tests are skipped with -short. Flags have been parsed.
func Main(ctx context.Context, m *testing.M, setting Setting, use func(Cluster)) int {
	if testing.Short() {
		setting.print("skipped with -short")
		return 0
	}
	return Run(ctx, m, setting, use)
}

func open(ctx context.Context, setting Setting) (Cluster, error) {
	machines, err := fleet.Open(setting.Machines)
	if err != nil {
		return Cluster{}, fmt.Errorf("opening the fleet: %w", err)
	}
	options := setting.Options
	options.Nodes, options.Slices, options.Classes = machines.Nodes, machines.Slices, machines.Classes
	running, err := cluster.Start(ctx, options)
	if err != nil {
		return Cluster{}, fmt.Errorf("starting the cluster: %w", err)
	}
	return Cluster{running, machines}, nil
}

// complaints is 1 if a component that runs under roles, ours or its own, was refused something by them, or panicked.
func (s Cluster) complaints(setting Setting) int {
	components := []string{"lockstep-controller", "lockstep-scheduler"}
	if setting.Options.Kueue {
		components = append(components, "kueue")
	}
	code := 0
	for _, component := range components {
		logs, err := filepath.Glob(filepath.Join(s.Dir(), "logs", component+"*.log")) // those of replicas too
		if err != nil || len(logs) == 0 {
			setting.print("no log of " + component)
			return 1
		}
		for _, file := range logs {
			code = max(code, complaintsIn(setting, component, file))
		}
	}
	return code
}

// complaintsIn is 1 if a log says that something was refused, or panicked.
func complaintsIn(setting Setting, component, file string) int {
	content, err := os.ReadFile(file)
	if err != nil {
		setting.print(err.Error())
		return 1
	}
	code := 0
	for line := range strings.Lines(string(content)) {
		refused := strings.Contains(line, "forbidden: User")
		if refused && (setting.Regates || setting.Excuses != nil && setting.Excuses(line)) {
			continue
		}
		if strings.Contains(line, "because it is being terminated") {
			continue // an Event about a pod of a namespace that the test has deleted: no role refused it
		}
		if strings.Contains(line, "forbidden") || strings.Contains(line, "panic") {
			setting.print(component + " complains: " + strings.TrimSpace(line))
			code = 1
		}
	}
	return code
}

// Submit submits the TrainJobs of files, and the other objects in them. They are not deleted.
func (s Cluster) Submit(t *testing.T, paths ...string) (workload.Workload, []summary.JobObservation) {
	t.Helper()
	jobs, err := workload.Load(paths)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	if err := liverun.Check(jobs, catalog); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := s.Alive(t.Context())
	defer cancel()
	submitted, err := liverun.Submit(ctx, s.Cluster, jobs, catalog, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	return jobs, submitted
}

// Watch follows submitted TrainJobs to their ends and returns the outcome of each, by name.
func (s Cluster) Watch(
	t *testing.T,
	submitted []summary.JobObservation,
	patience time.Duration,
) map[string]summary.Job {
	t.Helper()
	ended, err := s.Follow(t.Context(), submitted, patience, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// Follow is Watch beside a test.
func (s Cluster) Follow(
	ctx context.Context, submitted []summary.JobObservation, patience time.Duration, progress func(string),
) (map[string]summary.Job, error) {
	ctx, cancel := s.Alive(ctx)
	defer cancel()
	ledger, err := liverun.Run(ctx, submitted, liverun.Options{
		Client: s.Client, Dynamic: s.Dynamic, Clock: clock.RealClock{}, Patience: patience, Progress: progress,
	})
	if err != nil {
		return nil, fmt.Errorf("following the jobs: %w", err)
	}
	byName := map[string]summary.Job{}
	for _, job := range liverun.Report(s.Machines, submitted, ledger, clock.RealClock{}.Now()).Jobs {
		byName[job.Name] = job
	}
	return byName, nil
}
