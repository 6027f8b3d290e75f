package real_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/realnode"
)

// A pod whose process exits on SIGTERM takes longer to end on a real node than on a simulated one: what the scheduler
// has to say of a rank before its exit code is read, it has to say faster in all other tests.
func TestKubelet_TakesLongerThanTheFakeOne(t *testing.T) {
	const pods = 12 // one that has just started ends later than those that have run for a while
	var all []time.Duration
	for i := range pods {
		runOn(t, fmt.Sprintf("ends-%d", i), nodes[i%len(nodes)].Name)
	}
	for i := range pods {
		all = append(all, end(t, fmt.Sprintf("ends-%d", i)))
	}
	slices.Sort(all)
	t.Logf("from deletion to exit code: %v to %v, half within %v", all[0], all[len(all)-1], all[len(all)/2])
	if fake := cluster.EndsAfter * time.Millisecond; all[0] < fake {
		t.Errorf("a kubelet ended a pod in %v, the fake one takes %v", all[0], fake)
	}
}

// runOn runs a pod on a node, which stays until its exit code is read.
func runOn(t *testing.T, name, node string) {
	t.Helper()
	pods := shared.Client.CoreV1().Pods(metav1.NamespaceDefault)
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"test.lockstep.dev/stays"}},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "rank", Image: realnode.RankImage, Args: []string{"10m"}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		letGo := []byte(`{"metadata":{"finalizers":null}}`)
		ctx := context.WithoutCancel(t.Context())
		if _, err := pods.Patch(ctx, name, types.MergePatchType, letGo, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// end deletes a pod when it runs, and returns the time until its exit code is there.
func end(t *testing.T, name string) time.Duration {
	t.Helper()
	pods := shared.Client.CoreV1().Pods(metav1.NamespaceDefault)
	events, err := pods.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	var began time.Time
	for event := range events.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		switch {
		case !ok:
			t.Fatalf("watching %s: %v", name, event.Object)
		case pod.Status.Phase == corev1.PodRunning && began.IsZero():
			began = time.Now()
			if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		case pod.Status.Phase == corev1.PodFailed:
			return time.Since(began)
		}
	}
	t.Fatalf("%s: the watch ended", name)
	return 0
}
