// Package integration_test runs the scenarios that only a real control plane can answer, all on one embedded cluster.
package integration_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/simulator/cluster/nvlink"
	"github.com/lockstep-project/lockstep/simulator/fleet"
	"github.com/lockstep-project/lockstep/simulator/outcome"
	"github.com/lockstep-project/lockstep/simulator/session"
	"github.com/lockstep-project/lockstep/simulator/workload"
)

var (
	mode = flag.String("mode", string(probe.Full), "what the control plane offers: full or groups")

	shared   *cluster.Cluster
	machines fleet.Fleet
)

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(klog.NewKlogr()) // or controller-runtime prints a stack to say that nobody did
	os.Exit(run(m))
}

// run brings the cluster up once for all tests of the package.
func run(m *testing.M) int {
	if testing.Short() {
		fmt.Println("integration: skipped with -short")
		return 0
	}
	var err error
	if machines, err = fleet.Open("gb200-72"); err != nil {
		fmt.Println(err)
		return 1
	}
	dir, err := os.MkdirTemp("", "lockstep-integration-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	shared, err = cluster.Start(context.Background(), cluster.Options{
		Dir: filepath.Join(dir, "state"), Mode: probe.Mode(*mode), Nodes: machines.Nodes,
		NVLink: nvlink.Settings{Quickest: 500 * time.Millisecond, Slowest: 2 * time.Second},
		Report: func(line string) { fmt.Println("cluster:", line) },
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	code := m.Run()
	if code == 0 {
		code = complaints()
	}
	shared.Stop(context.Background())
	if code == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Println("integration: the logs are in", filepath.Join(dir, "state", "logs"))
	}
	return code
}

// complaints fails the run if one of our binaries was refused something by the roles that we ship, or panicked.
func complaints() int {
	code := 0
	for _, component := range []string{"lockstep-controller", "lockstep-scheduler"} {
		log, err := os.ReadFile(filepath.Join(shared.Dir(), "logs", component+".log"))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "forbidden") || strings.Contains(line, "panic") {
				fmt.Printf("integration: %s complains: %s", component, line)
				code = 1
			}
		}
	}
	return code
}

// play submits the TrainJobs of some YAML (its own namespace is made) and returns how each ended, by name.
func play(t *testing.T, patience time.Duration, yaml string) map[string]outcome.Job {
	t.Helper()
	return playFiles(t, patience, written(t, yaml))
}

// submit submits the TrainJobs of some YAML, in which NAMESPACE is the test's own, and comes back at once.
func submit(t *testing.T, yaml string) {
	t.Helper()
	submitFiles(t, written(t, yaml))
}

// submitMore submits what comes later, when the test's namespace is there.
func submitMore(t *testing.T, yaml string) {
	t.Helper()
	submitFiles(t, fileOf(t, yaml))
}

// written is a file with some YAML and the test's own namespace.
func written(t *testing.T, yaml string) string {
	t.Helper()
	return fileOf(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE}\n---\n"+yaml)
}

// fileOf is a file with some YAML.
func fileOf(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(yaml, "NAMESPACE", namespaceOf(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func namespaceOf(t *testing.T) string {
	t.Helper()
	return strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
}

func playFiles(t *testing.T, patience time.Duration, paths ...string) map[string]outcome.Job {
	t.Helper()
	ctx, cancel := shared.Alive(t.Context())
	defer cancel()
	submitted := submitFiles(t, paths...)
	ledger, err := session.Run(ctx, submitted, session.Options{
		Client: shared.Client, Dynamic: shared.Dynamic, Clock: clock.RealClock{}, Patience: patience,
		Progress: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]outcome.Job{}
	for _, job := range session.Report(machines, submitted, ledger, time.Now()).Jobs {
		byName[job.Name] = job
	}
	return byName
}

// submitFiles submits the TrainJobs of files as lockstep up does. They are discarded when the test ends.
func submitFiles(t *testing.T, paths ...string) []outcome.JobObservation {
	t.Helper()
	jobs, err := workload.Load(paths)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := session.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Check(jobs, catalog); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := shared.Alive(t.Context())
	defer cancel()
	submitted, err := session.Submit(ctx, shared, jobs, catalog, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { discard(t, submitted) })
	return submitted
}

// discard deletes TrainJobs and waits until their pods are gone, so that tests do not compete for machines.
func discard(t *testing.T, jobs []outcome.JobObservation) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 60*time.Second)
	defer cancel()
	for _, job := range jobs {
		namespace, name := job.TrainJob.GetNamespace(), job.TrainJob.GetName()
		if err := shared.Dynamic.Resource(trainJobs).
			Namespace(namespace).
			Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting TrainJob %s: %v", name, err)
		}
		for len(podsOf(ctx, t, namespace, name)) > 0 {
			select {
			case <-ctx.Done():
				t.Fatalf("the pods of TrainJob %s are still there after its deletion", name)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

func podsOf(ctx context.Context, t *testing.T, namespace, job string) []corev1.Pod {
	t.Helper()
	pods, err := shared.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + job,
	})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// eventually fails the test unless what is waited for comes within 20 s.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	within(t, 20*time.Second, what, holds)
}

// within fails the test unless what is waited for comes in time.
func within(t *testing.T, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("%s did not come: %v", what, err)
	}
}
