package datacache_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

var clusterRoles = schema.GroupVersionResource{
	Group:    "rbac.authorization.k8s.io",
	Version:  "v1",
	Resource: "clusterroles",
}

// The role that Kubeflow Trainer ships does not let its initializer read the TrainJob: the initializer prints so,
// creates nothing, and ends without an error.
func TestUpstreamsRole_CreatesNoCache(t *testing.T) {
	sets.start(t)
	upstreamsRole(t)
	const job = "upstreams-role"
	submit(t, sample(t, job, 1, small()))
	within(t, 2*time.Minute, "the end of the initializer", func() bool { return len(initialized(t, job)) == 1 })
	expect(t, words(t, job, "dataset-initializer"), `Failed to get TrainJob upstreams-role: \(403\)`)
	if _, err := shared.Dynamic.Resource(setsOf).
		Namespace(namespace).
		Get(t.Context(), job+"-cache", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("its LeaderWorkerSet: %v", err)
	}
}

// With that right, the initializer that runs for the second time deletes the account of the cache that its first run
// has created. With Lockstep's role the cache retains it: see TestCache_InitializerStartsTwice.
func TestUpstreamsRole_DeletesTheAccountOfItsCache(t *testing.T) {
	sets.start(t)
	upstreamsRole(t, map[string]any{
		"apiGroups": []any{"trainer.kubeflow.org"}, "resources": []any{"trainjobs"}, "verbs": []any{"get"},
	})
	const job = "upstreams-twice"
	submit(t, sample(t, job, 1, small()))
	restart(t, job, func() {})
	within(t, 2*time.Minute, "the end of the second initializer", func() bool { return len(initialized(t, job)) == 1 })
	if _, err := shared.Client.CoreV1().
		ServiceAccounts(namespace).
		Get(t.Context(), job+"-cache", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the account of the cache: %v", err)
	}
}

// initialized are the pods of a job's initializer that have ended without an error.
func initialized(t *testing.T, job string) []corev1.Pod {
	t.Helper()
	return slices.DeleteFunc(step(t, job, "dataset-initializer"), func(pod corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodSucceeded
	})
}

// restart deletes the initializer's pod as soon as it has created all that it creates. look is called while that is not
// so.
func restart(t *testing.T, job string, look func()) {
	t.Helper()
	within(t, time.Minute, "the Service of the cache", func() bool {
		look()
		_, err := shared.Client.CoreV1().Services(namespace).Get(t.Context(), job+"-cache-service", metav1.GetOptions{})
		return err == nil
	})
	first := step(t, job, "dataset-initializer")[0]
	err := shared.Client.CoreV1().Pods(namespace).
		Delete(t.Context(), first.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if err != nil {
		t.Fatal(err)
	}
}

// upstreamsRole puts the role of Kubeflow Trainer, with more rules, in the place of Lockstep's until the test ends.
func upstreamsRole(t *testing.T, more ...any) {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, *cacheDir, "cluster_role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render.Objects(content)
	if err != nil {
		t.Fatal(err)
	}
	roles := shared.Dynamic.Resource(clusterRoles)
	ours, err := roles.Get(t.Context(), objects[0].GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rules, _, err := unstructured.NestedSlice(objects[0].Object, "rules")
	if err != nil {
		t.Fatal(err)
	}
	write := func(ctx context.Context, rules any) {
		t.Helper()
		now, err := roles.Get(ctx, ours.GetName(), metav1.GetOptions{})
		if err == nil {
			now.Object["rules"] = rules
			_, err = roles.Update(ctx, now, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(t.Context(), append(rules, more...))
	t.Cleanup(func() { write(context.WithoutCancel(t.Context()), ours.Object["rules"]) })
}
