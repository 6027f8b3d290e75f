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

// garbageLag is the delay of the collectors.
const garbageLag = 300 * time.Millisecond

// GroupProtection is the finalizer of PodGroups that have pods.
const GroupProtection = "scheduling.k8s.io/podgroup-protection"

// garbage collects objects that have lost all their owners, ends those that wait for their dependents, and releases
// PodGroups without pods.
type garbage struct {
	World

	due bool
}

func (g *garbage) changed(e apiserver.Event) {
	goes := e.New == nil || e.New.GetDeletionTimestamp() != nil
	pod, isPod := e.New.(*corev1.Pod)
	late := e.Old == nil && len(e.New.GetOwnerReferences()) > 0
	if (goes || isPod && snapshot.Ended(pod) || late) && !g.due {
		g.due = true
		g.After(g.Delay(garbageLag, "garbage"), func() {
			g.due = false
			g.collect()
		})
	}
}

func (g *garbage) collect() {
	h := g.survey()
	waits := make(map[types.UID]bool)
	for _, o := range h.all {
		g.follow(h, o, waits)
	}
	for _, o := range h.all {
		if o.GetDeletionTimestamp() == nil {
			continue
		}
		if !waits[o.GetUID()] {
			g.finalize(h.kinds[o.GetUID()], o, metav1.FinalizerDeleteDependents)
		}
		if h.kinds[o.GetUID()] == "PodGroup" && !g.used(o) {
			g.finalize("PodGroup", o, GroupProtection)
		}
	}
}

// heap is all that there is, by UID too.
type heap struct {
	all    []client.Object
	owners map[types.UID]client.Object
	kinds  map[types.UID]string
}

func (g *garbage) survey() heap {
	h := heap{owners: make(map[types.UID]client.Object), kinds: make(map[types.UID]string)}
	for _, kind := range g.Server.Kinds() {
		for _, o := range g.Server.List(kind, "") {
			h.all = append(h.all, o)
			h.owners[o.GetUID()], h.kinds[o.GetUID()] = o, kind
		}
	}
	return h
}

// follow deletes an object whose owners are deleted, or wait for it; waits records the waiting owners.
func (g *garbage) follow(h heap, o client.Object, waits map[types.UID]bool) {
	orphaned, foreground := len(o.GetOwnerReferences()) > 0, false
	for _, ref := range o.GetOwnerReferences() {
		owner := h.owners[ref.UID]
		if owner == nil {
			continue
		}
		orphaned = false
		if owner.GetDeletionTimestamp() != nil &&
			slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			foreground = true
			waits[ref.UID] = waits[ref.UID] || isTrue(ref.BlockOwnerDeletion)
		}
	}
	if !orphaned && !foreground || o.GetDeletionTimestamp() != nil {
		return
	}
	how := metav1.DeletePropagationBackground
	if foreground {
		how = metav1.DeletePropagationForeground
	}
	must(g.Server.Delete(
		h.kinds[o.GetUID()], client.ObjectKeyFromObject(o), metav1.DeleteOptions{PropagationPolicy: &how}))
}

// used reports whether a PodGroup has pods that have not ended.
func (g *garbage) used(group client.Object) bool {
	return slices.ContainsFunc(g.Server.List("Pod", group.GetNamespace()), func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		if !ok || snapshot.Ended(pod) {
			return false
		}
		key, ok := snapshot.GroupOf(pod)
		return ok && key == client.ObjectKeyFromObject(group)
	})
}

func (g *garbage) finalize(kind string, o client.Object, finalizer string) {
	found, err := g.Server.Get(kind, client.ObjectKeyFromObject(o))
	if err != nil || found.GetUID() != o.GetUID() || !slices.Contains(found.GetFinalizers(), finalizer) {
		return
	}
	next, ok := found.DeepCopyObject().(client.Object)
	if !ok {
		return
	}
	next.SetFinalizers(
		slices.DeleteFunc(slices.Clone(found.GetFinalizers()), func(f string) bool { return f == finalizer }),
	)
	_, err = g.Server.Update(next, "")
	must(err)
}
