package waiting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// Alike reports whether pods that ask for the same resources of the same nodes as this one fit or do not fit alike:
// whether nothing else about it decides where it may run. Volumes, ports and rules between pods do.
func Alike(pod *corev1.Pod) bool {
	spec := &pod.Spec
	if a := spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
		return false
	}
	if len(spec.ResourceClaims) > 0 || len(spec.TopologySpreadConstraints) > 0 {
		return false
	}
	ports := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 })
	}
	if slices.ContainsFunc(spec.Containers, ports) || slices.ContainsFunc(spec.InitContainers, ports) {
		return false
	}
	return !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.ISCSI != nil ||
			v.AWSElasticBlockStore != nil ||
			v.GCEPersistentDisk != nil ||
			v.RBD != nil
	})
}

// Refused reports that the framework found no node for a single pod. If the machine finds none either, the pod waits in
// the queue with those that ask for the same, and the needs say for what. Otherwise the machine does not know the
// obstacle, and the scheduling queue's own events bring the pod back; the needs are nil then.
func (q *Queue) Refused(x *Question) *Needs {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events++
	now := q.clock.Clock.Now()
	snap := q.snapshot(x, now)
	e := q.adds(x, now)
	if !q.machine.Candidate(e.ID) {
		q.count()
		reason, _ := q.machine.Reason(e.ID)
		return q.needs(x, Outcome{Wait: reason, Lease: q.lease(e.ID)})
	}
	out := q.evaluate(x, e.ID, &snap)
	q.conclude(x, &out, &snap)
	if out.Placed != nil {
		q.placed = nil
		for _, action := range q.machine.Remove(e.ID, q.now()) {
			q.act(nil, action)
		}
	}
	q.remindIfCandidates()
	q.count()
	if out.Placed != nil {
		return nil
	}
	return q.needs(x, out)
}

// needs names the place of a pod's lease: between two evaluations its numbers may be those of another fleet.
func (q *Queue) needs(x *Question, out Outcome) *Needs {
	n := &Needs{Question: x, Outcome: out}
	if p := q.atlas.places[x.id()]; p != nil && out.Lease != nil {
		for _, m := range p.members {
			n.Place = append(n.Place, m.node)
		}
	}
	return n
}

// Knows reports whether an entity waits in the queue.
func (q *Queue) Knows(id contention.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.machine.Knows(id)
}
