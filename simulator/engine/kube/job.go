package kube

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/topology"
)

// job is the state of a job.
type job struct {
	// given has the job's objects in the snapshot; none for a job of a trace.
	given importer.Workload
	// times counts its arrivals: once, and once more each time it was preempted or disrupted.
	times int
	// group is its PodGroup, nil for a pod in none; promised says that it has an expected end.
	group    *schedulingv1beta1.PodGroup
	promised bool
	// queuedAt is since when it is in the queue, since the scenario's beginning.
	queuedAt time.Duration
	// suspended is set while a job that arrived neither waits nor runs, and has not ended.
	suspended bool
	// waits is set from its arrival to its start, runs from its start to its end.
	waits, runs bool
	// leaves is set from its eviction until its grace is over.
	leaves bool
	// nodes are those of its ranks, -1 for a rank without one; there are bound of them, and fresh are those bound just
	// now.
	nodes        []int
	bound, fresh int
	// number counts the starts of all jobs.
	number int
	// progress is the work of its runs.
	progress cost.Progress
}

// running is the state of a unit that runs from the beginning.
type running struct {
	until time.Duration
	over  bool
}

// submit lets a job arrive, for the first time or again.
func (w *world) submit(i int) error {
	j := &w.jobs[i]
	j.times++
	j.waits, j.runs, j.leaves, j.bound, j.fresh = true, false, false, 0, 0
	j.nodes = slices.Repeat([]int{engine.None}, len(w.scene.Jobs[i].Gang.Members))
	w.waiting++
	w.fresh = append(w.fresh, i)
	w.quiet = w.clock.Now()
	group, pods := w.objects(i)
	j.group, j.promised = nil, false
	for rank, pod := range pods {
		w.podRanks[stepped.NameOf(pod)] = podRank{owner{i, engine.None}, rank}
	}
	// The controller makes the PodGroup first. In-tree, each pod that is created after it causes a pass over those
	// before it; with the pods first there is one pass less, with the same outcome.
	early, late := pods[:0], pods
	if w.options.Profile == Native {
		early, late = pods, nil
	}
	for _, pod := range early {
		if err := w.pods.Add(pod); err != nil {
			return err
		}
	}
	if group != nil {
		if err := w.putGroup(i, group); err != nil {
			return err
		}
	}
	for _, pod := range late {
		if err := w.pods.Add(pod); err != nil {
			return err
		}
	}
	w.clock.Nudge()
	return nil
}

// promise writes on the PodGroups of waiting jobs that have an estimate the instant at which each would end if it
// started now. Trainers report the remaining time when they run, so the time that it waited is not mentioned. The
// objects are changed in place: an update would add gangs to the queue that are in it already, and no other goroutine
// is at work.
func (w *world) promise() {
	now := w.since().Truncate(time.Second)
	fresh := w.promised != now
	w.promised = now
	for i := range w.jobs[:w.submitted] {
		j := &w.jobs[i]
		if of := &w.scene.Jobs[i]; j.group != nil && j.waits && of.Estimate > 0 && (fresh || !j.promised) {
			j.promised, j.group.Annotations[topology.AnnotationExpectedEnd] = true, w.instant(now+of.Estimate)
		}
	}
}

// least is the number of members with which a job starts.
func (w *world) least(i int) int {
	if w.elastic(i) {
		return w.scene.Jobs[i].Min
	}
	return w.scene.Jobs[i].Needed
}

// elastic reports whether members of a job may wait while it runs.
func (w *world) elastic(i int) bool {
	of := &w.scene.Jobs[i]
	return of.Min > 0 && of.Min < len(of.Gang.Members)
}

// binds takes note of a member that has its node.
func (w *world) binds(pod *corev1.Pod) {
	of, ok := w.podRanks[stepped.NameOf(pod)]
	if !ok || of.job == engine.None {
		return
	}
	at, known := w.scene.Ledger.Tree.Index(pod.Spec.NodeName)
	j := &w.jobs[of.job]
	if !known || j.nodes[of.rank] != engine.None {
		return
	}
	j.nodes[of.rank] = at
	j.bound++
	if j.fresh++; j.fresh == 1 {
		w.bound = append(w.bound, of.job)
	}
}

// begin reports that a job started or that members joined it, as the members show that were bound just now. Of a job
// that is not elastic, members that were not needed and have no node leave: such a gang is as large as it starts.
func (w *world) begin(i int) error {
	j := &w.jobs[i]
	j.fresh = 0
	if j.bound < w.least(i) {
		return nil
	}
	nodes := make([]int, 0, j.bound)
	for rank, at := range j.nodes {
		if at != engine.None {
			nodes = append(nodes, at)
			continue
		}
		if w.elastic(i) {
			continue
		}
		if err := w.removePod(w.podOf(i, rank)); err != nil {
			return err
		}
	}
	now, kind := w.since(), engine.Joined
	if !j.runs {
		kind = engine.Started
		w.waiting--
		w.starts++
		j.runs, j.waits, j.number = true, false, w.starts
		w.ends.add(end{at: now + w.takes(i, nodes), of: owner{i, engine.None}, number: j.number, times: j.times})
	}
	w.quiet = w.clock.Now()
	w.watcher.Happens(engine.Event{At: now, Kind: kind, Job: i, Running: engine.None, Nodes: nodes})
	w.clock.Nudge()
	return nil
}

// takes begins a run of a job on these nodes, and returns its duration.
func (w *world) takes(i int, nodes []int) time.Duration {
	of, progress := &w.scene.Jobs[i], &w.jobs[i].progress
	if of.Duration == scenario.Forever || w.scene.Options.Costs.Off() {
		return of.Duration
	}
	now := int64(w.since() / time.Second)
	progress.Begin(w.scene.Pace(i, nodes, progress.Done), now)
	return time.Duration(progress.Ends(int64(of.Duration/time.Second))-now) * time.Second
}

// leave ends a job, or something that ran from the beginning, and takes all that it had away.
func (w *world) leave(who owner, kind engine.Kind) error {
	w.quiet = w.clock.Now()
	w.watcher.Happens(engine.Event{At: w.since(), Kind: kind, Job: who.job, Running: who.running})
	if who.job == engine.None {
		r := w.given.Running[who.running]
		w.running[who.running].over = true
		for _, pod := range r.Pods {
			if err := w.removePod(stepped.NameOf(pod)); err != nil {
				return err
			}
		}
		if r.Group == nil {
			return nil
		}
		return w.removeGroup(stepped.NameOf(r.Group))
	}
	j := &w.jobs[who.job]
	if j.waits {
		w.waiting--
	}
	if j.runs && kind != engine.Ended && !w.scene.Options.Costs.Off() {
		j.progress.Stop(int64(w.since() / time.Second))
	}
	j.waits, j.runs, j.leaves = false, false, false
	if w.options.Learns && kind == engine.Ended {
		if err := w.succeed(who.job); err != nil {
			return err
		}
	}
	for rank := range w.scene.Jobs[who.job].Gang.Members {
		if err := w.removePod(w.podOf(who.job, rank)); err != nil {
			return err
		}
	}
	return w.removeGroup(w.groupOf(who.job))
}

// succeed has the members of a job succeed.
func (w *world) succeed(i int) error {
	for rank := range w.scene.Jobs[i].Gang.Members {
		pod, ok := stepped.Get[*corev1.Pod](w.pods, w.podOf(i, rank))
		if !ok || pod.Spec.NodeName == "" {
			continue
		}
		ended := *pod // shared objects are not modified
		ended.Status.Phase = corev1.PodSucceeded
		if err := w.pods.Update(pod, touched(w, &ended)); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) removePod(name types.NamespacedName) error {
	delete(w.podRanks, name)
	if pod, ok := stepped.Get[*corev1.Pod](w.pods, name); ok {
		return w.pods.Remove(pod)
	}
	return nil
}

func (w *world) removeGroup(name types.NamespacedName) error {
	if group, ok := stepped.Get[*schedulingv1beta1.PodGroup](w.groups, name); ok {
		return w.groups.Remove(group)
	}
	return nil
}

// isOver reports whether an end is of a start that is over already.
func (w *world) isOver(e end) bool {
	if e.of.job == engine.None {
		return w.running[e.of.running].over
	}
	j := &w.jobs[e.of.job]
	return !j.runs || j.times != e.times
}

// end is the time at which a unit ends, or leaves.
type end struct {
	at time.Duration
	of owner
	// number is the job's, 0 for an initial unit.
	number int
	// times is the job's when it started.
	times int
	// leaves is set if the grace of an eviction is over.
	leaves bool
}

// agenda is a heap of ends: by instant, then initial units, then jobs in the order of their starts. A job that ends
// when its grace is over leaves.
type agenda []end

func (a *agenda) add(e end) { heap.Push(a, e) }

func (a *agenda) take() end {
	e, _ := heap.Pop(a).(end) // nothing else is in it
	return e
}

// Len is for package heap, as the others are.
func (a *agenda) Len() int { return len(*a) }

func (a *agenda) Less(i, j int) bool {
	x, y := (*a)[i], (*a)[j]
	by := cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.number, y.number), cmp.Compare(x.of.running, y.of.running))
	return by < 0 || by == 0 && x.leaves && !y.leaves
}

func (a *agenda) Swap(i, j int) { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }

// Push is for package heap.
func (a *agenda) Push(x any) {
	e, _ := x.(end) // nothing else is pushed
	*a = append(*a, e)
}

// Pop is for package heap.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	*a = (*a)[:last]
	return e
}
