package kube

import (
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// suspend deletes the pods of a job that waits, as the controller of a suspended job does, and its PodGroup if it is
// withdrawn.
func (w *world) suspend(e scenario.Event) error {
	j := &w.jobs[e.Job]
	if !j.waits {
		return nil
	}
	j.waits, j.suspended = false, true
	w.waiting--
	w.quiet = w.clock.Now()
	w.watcher.Happens(engine.Event{At: w.since(), Kind: engine.Suspended, Job: e.Job, Running: engine.None})
	for rank := range j.nodes {
		if err := w.removePod(w.podOf(e.Job, rank)); err != nil {
			return err
		}
	}
	if e.Kind == scenario.Withdraw {
		if err := w.removeGroup(w.groupOf(e.Job)); err != nil {
			return err
		}
	}
	w.clock.Nudge()
	return nil
}

// comeBack creates the pods of a suspended job again. A job that is resumed is queued anew.
func (w *world) comeBack(e scenario.Event) error {
	j := &w.jobs[e.Job]
	if !j.suspended {
		return nil
	}
	j.suspended = false
	if e.Kind == scenario.Resume {
		j.queuedAt = e.At
	}
	w.watcher.Happens(engine.Event{At: w.since(), Kind: engine.Resumed, Job: e.Job, Running: engine.None})
	return w.submit(e.Job)
}

// putGroup adds the PodGroup of a job. If it is there, it only gets the job's place in the queue.
func (w *world) putGroup(i int, group *schedulingv1beta1.PodGroup) error {
	j := &w.jobs[i]
	w.expect(i, group)
	old, ok := stepped.Get[*schedulingv1beta1.PodGroup](w.groups, stepped.NameOf(group))
	if !ok {
		j.group = group
		return w.groups.Add(group)
	}
	j.group = old
	at := group.Annotations[topology.AnnotationQueuedAt]
	if old.Annotations[topology.AnnotationQueuedAt] == at {
		w.expect(i, old)
		return nil
	}
	j.group = touched(w, old.DeepCopy())
	j.group.Annotations[topology.AnnotationQueuedAt] = at
	w.expect(i, j.group)
	return w.groups.Update(old, j.group)
}

// expect writes on the PodGroup of a job that has an estimate the instant at which it would end if it started now. The
// job's due time is computed from that as it enters the queue.
func (w *world) expect(i int, group *schedulingv1beta1.PodGroup) {
	if estimate := w.scene.Jobs[i].Estimate; estimate > 0 {
		group.Annotations[topology.AnnotationExpectedEnd] = w.instant(w.since().Truncate(time.Second) + estimate)
	}
}
