package kube

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// deliver carries out the recorded API calls, and notifies the scheduler. It reports whether there were any.
func (w *world) deliver() (bool, error) {
	asked := w.client.take()
	for _, b := range asked.bound {
		if err := w.bind(b); err != nil {
			return false, err
		}
	}
	for _, i := range w.bound {
		if err := w.begin(i); err != nil {
			return false, err
		}
	}
	w.bound = w.bound[:0]
	for _, n := range asked.nominated {
		if err := w.nominate(n); err != nil {
			return false, err
		}
	}
	if err := w.evict(asked); err != nil {
		return false, err
	}
	return len(asked.bound)+len(asked.deleted)+len(asked.nominated) > 0, nil
}

// bind puts a pod on its node. Kubelets start it at once.
func (w *world) bind(b bound) error {
	pod, ok := stepped.Get[*corev1.Pod](w.pods, b.pod)
	if !ok {
		return nil // it was deleted in the same cycle
	}
	now := metav1.NewTime(w.clock.Now())
	placed := *pod // shared objects are not modified
	placed.Spec.NodeName, placed.Status.NominatedNodeName = b.node, ""
	placed.Status.Phase, placed.Status.StartTime = corev1.PodRunning, &now
	if err := w.pods.Update(pod, touched(w, &placed)); err != nil {
		return err
	}
	w.binds(&placed)
	return nil
}

// nominate records the nominated node of a pod, which becomes free when others have left.
func (w *world) nominate(n nominated) error {
	pod, ok := stepped.Get[*corev1.Pod](w.pods, n.pod)
	if !ok || pod.Spec.NodeName != "" || pod.Status.NominatedNodeName == n.node {
		return nil
	}
	changed := *pod
	changed.Status.NominatedNodeName = n.node
	return w.pods.Update(pod, touched(w, &changed))
}

// evict ends those that lose a pod. A job whose pod is deleted ends whole and starts again; pods without an owner are
// only deleted.
func (w *world) evict(asked calls) error {
	victims := make(map[owner]bool)
	for _, name := range asked.deleted {
		pod, ok := stepped.Get[*corev1.Pod](w.pods, name)
		if !ok {
			continue
		}
		if of, ok := w.podRanks[name]; ok {
			victims[of.owner] = true
			continue
		}
		if err := w.pods.Remove(pod); err != nil {
			return err
		}
	}
	for _, who := range slices.SortedFunc(maps.Keys(victims), w.byStart) {
		if who.job == engine.None {
			if err := w.leave(who, engine.Preempted); err != nil {
				return err
			}
			continue
		}
		if err := w.preempt(who.job); err != nil {
			return err
		}
	}
	return nil
}

// preempt has a job leave, at once or when its grace is over. It runs until then.
func (w *world) preempt(i int) error {
	grace, j := w.scene.Jobs[i].Grace, &w.jobs[i]
	switch {
	case j.leaves:
		return nil
	case grace == 0 || !j.runs:
		return w.again(i, engine.Preempted)
	}
	j.leaves, w.quiet = true, w.clock.Now()
	w.watcher.Happens(engine.Event{At: w.since(), Kind: engine.Evicted, Job: i, Running: engine.None})
	w.ends.add(end{at: w.since() + grace, of: owner{i, engine.None}, number: j.number, times: j.times, leaves: true})
	for rank := range j.nodes {
		if err := w.terminate(w.podOf(i, rank), grace); err != nil {
			return err
		}
	}
	w.clock.Nudge()
	return nil
}

// terminate deletes a pod as the API server does: one on a node has its grace, and one without a node is removed at
// once.
func (w *world) terminate(name types.NamespacedName, grace time.Duration) error {
	pod, ok := stepped.Get[*corev1.Pod](w.pods, name)
	if !ok {
		return nil
	}
	if pod.Spec.NodeName == "" {
		return w.removePod(name)
	}
	changed := *pod // shared objects are not modified
	changed.DeletionTimestamp = new(metav1.NewTime(w.clock.Now().Truncate(time.Second).Add(grace)))
	changed.DeletionGracePeriodSeconds = new(int64(grace / time.Second))
	return w.pods.Update(pod, touched(w, &changed))
}

// kept is the report of a job's closed lease.
type kept struct {
	nodes []int
	from  time.Duration
}

// reportKept reports the closed leases that are new, or whose place or firm instant changed.
func (w *world) reportKept() {
	if w.parts.waiting == nil || w.keptAt == w.parts.waiting.Changes() {
		return
	}
	w.keptAt = w.parts.waiting.Changes()
	now := make(map[int]kept)
	for _, l := range w.parts.waiting.Leases() {
		who, ok := w.byGroup[l.Owner]
		if !ok || who.job == engine.None || l.Lease.Open || l.Lease.Reason != contention.Head {
			continue
		}
		k := kept{from: scenario.Forever}
		if l.Lease.Firm {
			k.from = time.Unix(l.Lease.Instant, 0).Sub(w.scene.Begin)
		}
		for name := range l.Room {
			if at, ok := w.scene.Ledger.Tree.Index(name); ok {
				k.nodes = append(k.nodes, at)
			}
		}
		slices.Sort(k.nodes)
		now[who.job] = k
		if before, known := w.kept[who.job]; known && before.from == k.from && slices.Equal(before.nodes, k.nodes) {
			continue
		}
		w.watcher.Happens(engine.Event{
			At: w.since(), Kind: engine.Leased, Job: who.job, Running: engine.None, Nodes: k.nodes, From: k.from,
		})
	}
	w.kept = now
}
