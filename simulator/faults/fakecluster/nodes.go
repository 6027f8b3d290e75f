package fakecluster

import (
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
	// unseen is the silence after which a node counts as lost, tolerated the time for which its pods are left alone
	// then.
	unseen    = 40 * time.Second
	tolerated = 5 * time.Minute
)

// nodes is the life cycle of nodes.
type nodes struct {
	World

	kubelets *kubelets
	// lost counts the losses of each node: work that a loss began ends with it.
	lost map[string]int
}

func (n *nodes) changed(e apiserver.Event) {
	old, _ := e.Old.(*corev1.Pod)
	pod, isPod := e.New.(*corev1.Pod)
	switch {
	case e.Kind == "Node" && e.New == nil:
		n.gone(e.Old.GetName())
	case isPod && pod.Spec.NodeName != "" && (old == nil || old.Spec.NodeName == ""):
		n.bound(pod)
	}
}

// Lose cuts a node off: its kubelet does nothing any more, its programs have ended, and the cluster notices it late.
func (m *Cluster) Lose(name string) {
	n := m.nodes
	if n.node(name) == nil || n.kubelets.down[name] {
		return
	}
	m.Log("node %s is lost", name)
	n.kubelets.down[name] = true
	n.lost[name]++
	times := n.lost[name]
	for _, pod := range n.on(name) {
		n.kubelets.stops(pod)
	}
	still := func(do func()) func() {
		return func() {
			if n.lost[name] == times && n.kubelets.down[name] && n.node(name) != nil {
				do()
			}
		}
	}
	m.After(unseen, still(func() { n.condition(name, corev1.ConditionUnknown) }))
	m.After(unseen+tolerated, still(func() {
		for _, pod := range n.on(name) {
			n.disrupt(pod, "DeletionByTaintManager")
			must(n.Server.Delete("Pod", client.ObjectKeyFromObject(pod), metav1.DeleteOptions{}))
		}
	}))
}

// Return makes a node ready again: the pods that ran there have failed.
func (m *Cluster) Return(name string) {
	n := m.nodes
	if !n.kubelets.down[name] {
		return
	}
	m.Log("node %s returns", name)
	delete(n.kubelets.down, name)
	if n.node(name) == nil {
		return
	}
	n.condition(name, corev1.ConditionTrue)
	n.boot(name)
}

// boot starts the pods that were bound to a node while its kubelet was down, and ends those that ran before.
func (n *nodes) boot(name string) {
	for _, pod := range n.on(name) {
		key, uid := client.ObjectKeyFromObject(pod), pod.UID
		if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
			n.After(n.Delay(pull, "pull again", pod.Name), func() { n.kubelets.start(key, uid) })
			continue
		}
		n.After(n.Delay(stop, "reboot", pod.Name), func() { n.kubelets.close(key, uid, killed) })
	}
}

// Delete takes a node out of the cluster, and Add puts one in.
func (m *Cluster) Delete(name string) {
	m.Log("node %s is deleted", name)
	must(m.Server.Delete("Node", types.NamespacedName{Name: name}, metav1.DeleteOptions{}))
}

// Add adds a node.
func (m *Cluster) Add(node *corev1.Node) {
	m.Log("node %s is added", node.Name)
	delete(m.nodes.kubelets.down, node.Name)
	_, err := m.Server.Create(node.DeepCopy())
	must(err)
	next := m.nodes.node(node.Name).DeepCopy()
	next.Status = *node.Status.DeepCopy()
	_, err = m.Server.Update(next, "status")
	must(err)
	m.nodes.condition(node.Name, corev1.ConditionTrue)
	m.nodes.boot(node.Name)
}

// Cordon closes a node, or opens it again.
func (m *Cluster) Cordon(name string, closed bool) {
	node := m.nodes.node(name)
	if node == nil {
		return
	}
	m.Log("node %s: unschedulable %v", name, closed)
	next := node.DeepCopy()
	next.Spec.Unschedulable = closed
	_, err := m.Server.Update(next, "")
	must(err)
}

// gone ends the pods of a deleted node.
func (n *nodes) gone(name string) {
	n.kubelets.down[name] = true
	n.lost[name]++
	for _, pod := range n.on(name) {
		key, uid := client.ObjectKeyFromObject(pod), pod.UID
		n.kubelets.stops(pod)
		n.After(n.Delay(20*time.Second, "collect", pod.Name), func() { n.collect(key, uid) })
	}
}

// orphaned is the time for which the collector leaves a pod alone that was bound to a node which is not there.
const orphaned = 40 * time.Second

// bound collects a pod that was bound to a missing node, unless a node of that name is created.
func (n *nodes) bound(pod *corev1.Pod) {
	if n.node(pod.Spec.NodeName) != nil {
		return
	}
	key, uid := client.ObjectKeyFromObject(pod), pod.UID
	n.After(orphaned, func() {
		if n.node(pod.Spec.NodeName) == nil {
			n.collect(key, uid)
		}
	})
}

// collect ends a pod without a node, and deletes it.
func (n *nodes) collect(key types.NamespacedName, uid types.UID) {
	pod := n.kubelets.now(key, uid)
	if pod == nil {
		return
	}
	if !snapshot.Ended(pod) {
		n.disrupt(pod, "DeletionByPodGC")
		n.kubelets.exit(n.kubelets.now(key, uid), killed)
	}
	must(n.Server.Delete("Pod", key, noGrace()))
}

func (n *nodes) disrupt(pod *corev1.Pod, reason string) {
	next := pod.DeepCopy()
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget
	})
	next.Status.Conditions = append(next.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason,
		LastTransitionTime: metav1.NewTime(n.Now()),
	})
	_, err := n.Server.Update(next, "status")
	must(err)
}

func (n *nodes) node(name string) *corev1.Node {
	found, err := n.Server.Get("Node", types.NamespacedName{Name: name})
	if err != nil {
		return nil
	}
	node, _ := found.(*corev1.Node)
	return node
}

// on are the pods on a node that have not ended.
func (n *nodes) on(name string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, o := range n.Server.List("Pod", "") {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName == name && !snapshot.Ended(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// condition makes a node ready or not, by its condition and its taints.
func (n *nodes) condition(name string, ready corev1.ConditionStatus) {
	node := n.node(name).DeepCopy()
	now := metav1.NewTime(n.Now())
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnreachable
	})
	if ready != corev1.ConditionTrue {
		node.Spec.Taints = append(node.Spec.Taints,
			corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &now})
	}
	_, err := n.Server.Update(node, "")
	must(err)
	node = n.node(name).DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, LastTransitionTime: now, LastHeartbeatTime: now,
	}}
	_, err = n.Server.Update(node, "status")
	must(err)
	if ready == corev1.ConditionTrue {
		return
	}
	for _, pod := range n.on(name) { // they are not ready any more
		next := pod.DeepCopy()
		for i := range next.Status.Conditions {
			if next.Status.Conditions[i].Type == corev1.PodReady {
				next.Status.Conditions[i].Status = corev1.ConditionFalse
			}
		}
		_, err := n.Server.Update(next, "status")
		must(err)
	}
}
