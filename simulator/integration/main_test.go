// Package integration_test runs the scenarios that only a real control plane can answer, on a few embedded clusters.
package integration_test

import (
	"cmp"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

var (
	mode     = flag.String("mode", "", "what the control plane offers: full, groups or resources; default the best one")
	release  = flag.String("kubernetes", cluster.NewestKubernetes, "the minor release of the control plane")
	parts    = flag.Int("parts", 2, "processes that share the tests, each with its own cluster; 1 with -requests")
	requests = requestsFlag()

	shared   testcluster.Cluster
	machines fleet.Fleet
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("integration: skipped with -short")
		return
	}
	options := cluster.Options{
		Mode:       offered(),
		Kubernetes: *release,
		NVLink:     nvlink.Settings{Quickest: 500 * time.Millisecond, Slowest: 2 * time.Second},
	}
	setting := testcluster.Setting{Name: "integration", Machines: "gb200-72", Options: options, Out: os.Stdout}
	setting.Options.Audit, setting.Check = *requests != "", compareRequests(*requests)
	if *requests != "" { // of all tests together
		*parts = 1
	}
	ctx := context.Background()
	os.Exit(testcluster.InParts(ctx, m, *parts, os.Stdout, func() int {
		return testcluster.Run(ctx, m, setting, func(s testcluster.Cluster) { shared, machines = s, s.Machines })
	}))
}

// offered is the mode of the shared cluster.
func offered() probe.Mode { return cmp.Or(probe.Mode(*mode), cluster.DefaultMode(*release)) }

// play submits the TrainJobs of some YAML (its own namespace is made) and returns the outcome of each, by name.
func play(t *testing.T, patience time.Duration, yaml string) map[string]summary.Job {
	t.Helper()
	return playFiles(t, patience, written(t, yaml))
}

// submit submits the TrainJobs of some YAML, in which NAMESPACE is the test's own, and returns at once.
func submit(t *testing.T, yaml string) {
	t.Helper()
	submitFiles(t, written(t, yaml))
}

// submitMore submits later TrainJobs, when the test's namespace exists.
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
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
}

func playFiles(t *testing.T, patience time.Duration, paths ...string) map[string]summary.Job {
	t.Helper()
	return shared.Watch(t, submitFiles(t, paths...), testcluster.Patience(patience))
}

// unplaced submits a TrainJob for which there is no room and returns its outcome when it is told what is wrong, and has
// stayed so for a while.
func unplaced(t *testing.T, name, yaml string, told func(summary.Job) bool) summary.Job {
	t.Helper()
	submitted := submitFiles(t, written(t, yaml))
	testcluster.Within(t, 20*time.Second, "what is wrong with "+name, func() bool {
		return told(shared.Watch(t, submitted, time.Second)[name])
	})
	return shared.Watch(t, submitted, 5*time.Second)[name]
}

// submitFiles submits the TrainJobs of files as lockstep up does. They are discarded when the test ends.
func submitFiles(t *testing.T, paths ...string) []summary.JobObservation {
	t.Helper()
	_, submitted := shared.Submit(t, paths...)
	t.Cleanup(func() { discard(t, submitted) })
	return submitted
}

// discard deletes TrainJobs and waits until their pods are deleted, so that tests do not compete for machines.
func discard(t *testing.T, jobs []summary.JobObservation) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testcluster.Patience(time.Minute))
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
	return shared.PodsOf(ctx, t, namespace, job)
}

// eventually is testcluster.Within for what a good machine does within 20 s.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	testcluster.Within(t, 20*time.Second, what, holds)
}

// objectOf reads one document of YAML.
func objectOf(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatal(err)
	}
	return &object
}
