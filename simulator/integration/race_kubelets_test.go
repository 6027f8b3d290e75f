package integration_test

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// bound is the kubelet's record of a pod.
type bound struct {
	node     string
	gpus     int64
	admitted bool
}

// see is the kubelets' admission: of the pods that are bound to a node, in this order, those are refused for which
// there are not enough GPUs left.
func (r *race) see(t *testing.T, event watch.Event) {
	t.Helper()
	pod, ok := event.Object.(*corev1.Pod)
	switch {
	case !ok:
		t.Fatalf("the watch of the pods says %v", event.Object)
	case event.Type == watch.Deleted:
		r.gone(pod)
		return
	case pod.Spec.NodeName == "":
		return
	}
	b := r.pods[pod.UID]
	if b == nil {
		asked := pod.Spec.Containers[0].Resources.Requests[gpu]
		b = &bound{node: pod.Spec.NodeName, gpus: asked.Value()}
		if b.admitted = b.gpus <= r.free[b.node]; b.admitted {
			r.free[b.node] -= b.gpus
		} else {
			r.refused[pod.Spec.SchedulerName]++
			r.refusers.Insert(b.node)
		}
		r.pods[pod.UID] = b
	}
	if pod.Status.Phase != corev1.PodRunning { // KWOK has not played its part yet, or we have
		return
	}
	if !b.admitted {
		r.refuse(t, pod)
	}
	r.tell(t, pod, b)
}

// tell notifies the pod's owner that it runs or was refused.
func (r *race) tell(t *testing.T, pod *corev1.Pod, b *bound) {
	t.Helper()
	if pod.Spec.SchedulingGroup == nil {
		if _, known := r.singles[pod.Name]; known && !b.admitted {
			r.singles[pod.Name] = time.Now()
		} else if r.singles[pod.Name].IsZero() {
			r.singles[pod.Name] = time.Now().Add(time.Duration(300+r.random.IntN(1200)) * time.Millisecond)
		}
		return
	}
	g := r.gangs[*pod.Spec.SchedulingGroup.PodGroupName]
	if g == nil || pod.Labels["try"] != strconv.Itoa(g.tries) {
		return // of an earlier try, or of a gang that has run
	}
	if !b.admitted {
		g.broken = true
		return
	}
	g.admitted[pod.Name] = b.node
	if len(g.admitted) == g.size && g.whole.IsZero() {
		g.whole = time.Now()
		r.inOneClique(t, g)
	}
}

func (r *race) gone(pod *corev1.Pod) {
	if b := r.pods[pod.UID]; b != nil && b.admitted {
		r.free[b.node] += b.gpus
	}
	delete(r.pods, pod.UID)
}

// refuse rejects a pod without a GPU, as a kubelet does.
func (r *race) refuse(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	patch := []byte(
		`{"status":{"phase":"Failed","reason":"OutOfnvidia.com/gpu","message":"Pod was rejected: Node didn't have enough resource: nvidia.com/gpu"}}`,
	)
	_, err := shared.Client.CoreV1().Pods(r.namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}
