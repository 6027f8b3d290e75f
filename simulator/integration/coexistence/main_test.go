// Package coexistence_test runs Lockstep beside other components that manage nodes: node autoscalers, the default
// scheduler, and pods that need no accelerator.
package coexistence_test

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/page"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

var (
	mode = flag.String(
		"mode",
		"",
		"what the control plane offers: full, groups or resources; default the best one",
	)
	long       = flag.Bool("long", false, "run the tests that take minutes, too")
	write      = flag.Bool("write", false, "write what the tests see to docs/neighbors.md")
	kubernetes = flag.String("kubernetes", cluster.NewestKubernetes, "the minor release of the control plane")

	shared testcluster.Cluster
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("coexistence: skipped with -short")
		return
	}
	offered := cmp.Or(probe.Mode(*mode), cluster.DefaultMode(*kubernetes))
	setting := testcluster.Setting{
		Name: "coexistence", Machines: "testdata/fleet.yaml", Out: os.Stdout,
		Options: cluster.Options{Mode: offered, Kubernetes: *kubernetes},
	}
	os.Exit(testcluster.Run(context.Background(), m, setting, func(s testcluster.Cluster) { shared = s }))
}

// documented fails the test unless docs/neighbors.md has these blocks.
func documented(t *testing.T, blocks map[string]string) {
	t.Helper()
	page.Page{
		File: "docs/neighbors.md", Marker: "go test ./simulator/integration/coexistence", Write: *write,
		Mend: "go test ./simulator/integration/coexistence -args -write",
	}.Has(t, blocks)
}

// install has the scheduler run with the profile and the rights of a release of the chart, until the test ends.
func install(t *testing.T, release render.Release) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	shipped, err := render.Chart(render.Default())
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := render.Chart(release)
	if err != nil {
		t.Fatal(err)
	}
	roles := func(of render.Rendered) {
		for _, role := range of.Find("ClusterRole", "lockstep-scheduler") {
			if err := shared.Apply(ctx, role); err != nil {
				t.Fatal(err)
			}
		}
	}
	var profile corev1.ConfigMap
	convert(t, rendered.Find("ConfigMap", "lockstep-scheduler")[0].Object, &profile)
	file := filepath.Join(t.TempDir(), "profile.yaml")
	if err := os.WriteFile(file, []byte(profile.Data["profile.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	roles(rendered)
	if err := shared.RestartScheduler(ctx, "--config="+file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.RestartScheduler(ctx); err != nil {
			t.Error(err)
		}
		roles(shipped)
	})
}

// create creates the objects of some YAML, in which NAMESPACE is the test's own.
func create(t *testing.T, text string) {
	t.Helper()
	objects, err := render.Objects([]byte(strings.ReplaceAll(text, "NAMESPACE", namespaceOf(t))))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if _, err := shared.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// exists reports whether the test's namespace does.
func exists(t *testing.T) bool {
	t.Helper()
	_, err := shared.Client.CoreV1().Namespaces().Get(t.Context(), namespaceOf(t), metav1.GetOptions{})
	return err == nil
}

// makeNamespace creates the test's namespace, which is emptied when the test ends.
func makeNamespace(t *testing.T) {
	t.Helper()
	name, ctx := namespaceOf(t), context.WithoutCancel(t.Context())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := shared.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		empty(ctx, t, name)
		if err := shared.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, testcluster.Patience(time.Minute), true,
			func(ctx context.Context) (bool, error) {
				_, err := shared.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), nil
			})
		if err != nil {
			t.Errorf("namespace %s is still there: %v", name, err)
		}
	})
}

// empty deletes the owners of pods, and the pods, so that nothing is bound in a namespace that is being deleted.
func empty(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64), PropagationPolicy: &background}
	for _, resource := range []schema.GroupVersionResource{
		{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"},
		{Group: "batch", Version: "v1", Resource: "jobs"},
		{Version: "v1", Resource: "pods"},
	} {
		objects := shared.Dynamic.Resource(resource).Namespace(namespace)
		if err := objects.DeleteCollection(ctx, options, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, testcluster.Patience(time.Minute), true,
		func(ctx context.Context) (bool, error) {
			list, err := shared.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) == 0, nil
		})
	if err != nil {
		t.Errorf("pods of namespace %s are still there: %v", namespace, err)
	}
}

// pods returns the pods of the test's namespace whose names begin with a text.
func pods(t *testing.T, prefix string) []corev1.Pod {
	t.Helper()
	var found []corev1.Pod
	testcluster.Ask(t, func() error {
		list, err := shared.Client.CoreV1().Pods(namespaceOf(t)).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing pods: %w", err)
		}
		found = nil
		for _, pod := range list.Items {
			if strings.HasPrefix(pod.Name, prefix) {
				found = append(found, pod)
			}
		}
		return nil
	})
	return found
}

func running(t *testing.T, prefix string) int {
	t.Helper()
	count := 0
	for _, pod := range pods(t, prefix) {
		if pod.Status.Phase == corev1.PodRunning {
			count++
		}
	}
	return count
}

func namespaceOf(t *testing.T) string {
	t.Helper()
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
}
