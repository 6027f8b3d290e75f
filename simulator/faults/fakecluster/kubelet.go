package fakecluster

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
)

const (
	// pull is the time until a pod that was bound runs, stop the time that a program takes to end.
	pull = 2 * time.Second
	stop = time.Second
)

// exits of programs.
const (
	killed = 137
	asked  = 143
)

// Work models the programs in pods.
type Work interface {
	// Runs is called when a pod starts to run, and Stops when it stops for any reason.
	Runs(pod *corev1.Pod)
	Stops(pod *corev1.Pod)
}

// kubelets start bound pods, and end deleted ones.
type kubelets struct {
	World

	work Work
	// down are the nodes whose kubelet does not answer; work that is due there is done when the kubelet is back.
	down map[string]bool
	// running are the pods that were reported to Work.
	running map[types.UID]bool
}

func newKubelets(w World, work Work) *kubelets {
	return &kubelets{World: w, work: work, down: make(map[string]bool), running: make(map[types.UID]bool)}
}

func (k *kubelets) changed(e apiserver.Event) {
	if e.Kind != "Pod" {
		return
	}
	old, _ := e.Old.(*corev1.Pod)
	pod, _ := e.New.(*corev1.Pod)
	switch {
	case pod == nil || snapshot.Ended(pod):
		k.stops(cmp.Or(pod, old))
	case pod.DeletionTimestamp != nil && (old == nil || old.DeletionTimestamp == nil):
		k.end(pod)
	case pod.Spec.NodeName != "" && (old == nil || old.Spec.NodeName == "" || prepared(pod) && !prepared(old)):
		k.After(k.Delay(pull, "pull", pod.Name), func() { k.start(client.ObjectKeyFromObject(pod), pod.UID) })
	}
}

func (k *kubelets) stops(pod *corev1.Pod) {
	if k.running[pod.UID] {
		delete(k.running, pod.UID)
		k.work.Stops(pod)
	}
}

// now returns the current state of a pod, nil if it is deleted.
func (k *kubelets) now(name types.NamespacedName, uid types.UID) *corev1.Pod {
	found, err := k.Server.Get("Pod", name)
	pod, ok := found.(*corev1.Pod)
	if err != nil || !ok || pod.UID != uid {
		return nil
	}
	return pod
}

// start runs a pod, or refuses it for lack of room.
func (k *kubelets) start(name types.NamespacedName, uid types.UID) {
	pod := k.now(name, uid)
	if pod == nil || snapshot.Ended(pod) || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodRunning ||
		k.down[pod.Spec.NodeName] || !prepared(pod) {
		return
	}
	found, err := k.Server.Get("Node", types.NamespacedName{Name: pod.Spec.NodeName})
	node, ok := found.(*corev1.Node)
	if err != nil || !ok {
		return
	}
	next := pod.DeepCopy()
	if lacks := k.lacks(node, pod); lacks != "" {
		k.Log("kubelet %s refuses %s for lack of %s", node.Name, name, lacks)
		next.Status.Phase, next.Status.Reason = corev1.PodFailed, "OutOf"+string(lacks)
		next.Status.Message = "Pod was rejected: Node didn't have enough resource: " + string(lacks)
	} else {
		now := metav1.NewTime(k.Now())
		next.Status.Phase, next.Status.StartTime = corev1.PodRunning, &now
		ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}
		next.Status.Conditions = append(next.Status.Conditions, ready)
	}
	_, err = k.Server.Update(next, "status")
	must(err)
	if next.Status.Phase == corev1.PodRunning {
		k.Log("runs %s on %s", name, node.Name)
		k.running[uid] = true
		k.work.Runs(next)
	}
}

// lacks returns a resource of a node that is too small for a pod beside those that have not ended there; "" if it has
// room.
func (k *kubelets) lacks(node *corev1.Node, pod *corev1.Pod) corev1.ResourceName {
	used := make(corev1.ResourceList)
	for _, o := range k.Server.List("Pod", "") {
		p, ok := o.(*corev1.Pod)
		if ok && p.Spec.NodeName == node.Name && !snapshot.Ended(p) &&
			(p.UID == pod.UID || p.Status.Phase == corev1.PodRunning) {
			addRequests(used, p)
		}
	}
	for _, name := range slices.Sorted(resourceNames(used)) {
		has := node.Status.Allocatable[name]
		if want := used[name]; want.Cmp(has) > 0 {
			return name
		}
	}
	return ""
}

// end ends a pod that was deleted.
func (k *kubelets) end(pod *corev1.Pod) {
	name, uid := client.ObjectKeyFromObject(pod), pod.UID
	if pod.Spec.NodeName == "" { // the collector of pods ends it
		k.After(k.Delay(10*time.Second, "unscheduled", pod.Name), func() { k.close(name, uid, asked) })
		return
	}
	k.After(k.Delay(stop, "stop", pod.Name), func() {
		if pod := k.now(name, uid); pod != nil && !k.down[pod.Spec.NodeName] {
			k.close(name, uid, asked)
		}
	})
}

// close marks a pod failed, and removes it if it was deleted.
func (k *kubelets) close(name types.NamespacedName, uid types.UID, code int32) {
	pod := k.now(name, uid)
	if pod == nil {
		return
	}
	if !snapshot.Ended(pod) {
		k.exit(pod, code)
	}
	if pod = k.now(name, uid); pod != nil && pod.DeletionTimestamp != nil {
		must(k.Server.Delete("Pod", name, noGrace()))
	}
}

// exit ends the program of a pod.
func (k *kubelets) exit(pod *corev1.Pod, code int32) {
	next := pod.DeepCopy()
	next.Status.Phase = corev1.PodFailed
	if code == 0 {
		next.Status.Phase = corev1.PodSucceeded
	}
	for i := range next.Status.Conditions {
		if next.Status.Conditions[i].Type == corev1.PodReady {
			next.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	if pod.Status.Phase == corev1.PodRunning {
		end := &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(k.Now())}
		next.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: end},
		}}
	}
	_, err := k.Server.Update(next, "status")
	must(err)
	k.Log("ends %s with %d", client.ObjectKeyFromObject(pod), code)
}

// Exit ends the program of a pod that runs on a node whose kubelet answers. It reports whether there is one.
func (m *Cluster) Exit(name types.NamespacedName, uid types.UID, code int32) bool {
	pod := m.kubelets.now(name, uid)
	if pod == nil || pod.Status.Phase != corev1.PodRunning || m.kubelets.down[pod.Spec.NodeName] {
		return false
	}
	m.kubelets.exit(pod, code)
	return true
}
