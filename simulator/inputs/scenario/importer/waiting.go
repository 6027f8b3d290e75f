package importer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// isGang reports whether the PodGroup of that name is there and starts as a whole; pods of all others start one by one.
func (c *snapshotBuilder) isGang(key types.NamespacedName) bool {
	group := c.groups[key]
	return group != nil && group.Spec.SchedulingPolicy.Gang != nil
}

// waiting is a gang or a single pod without nodes. Its group is nil for a pod in no gang.
type waiting struct {
	name  types.NamespacedName
	group *schedulingv1beta1.PodGroup
	pods  []*corev1.Pod
}

// skipped names waiting gangs and pods that do not become jobs, by the reason.
type skipped struct {
	gated, partial, invalid []string
	// daemons counts pods of DaemonSets.
	daemons int
}

// addWaiting adds waiting gangs and single pods as jobs. It notes those that the scheduler would not queue yet (gated
// pods, gangs that lack members) and those that it could not read.
func (c *snapshotBuilder) addWaiting() {
	var skip skipped
	c.objects.Jobs = make(map[string]Workload)
	undeclared := 0
	for _, w := range c.waiting(&skip) {
		j, pods, err := c.jobOf(w)
		if err != nil {
			skip.invalid = append(skip.invalid, fmt.Sprintf("%s (%s)", w.name, err))
			continue
		}
		if j.Duration == 0 {
			j.Duration = roundUp(c.Options.DefaultRunTime)
			undeclared++
		}
		for c.objects.Jobs[j.ID].Pods != nil { // a gang and a pod may have one name
			j = rename(j, j.ID+".pod")
		}
		c.objects.Jobs[j.ID] = Workload{Group: w.group, Pods: pods}
		c.Jobs = append(c.Jobs, j)
	}
	c.noteSkipped(skip)
	if undeclared > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf(
			"the run times of %d that wait are unknown: %s each is assumed", undeclared, c.Options.DefaultRunTime,
		))
	}
}

func (c *snapshotBuilder) noteSkipped(skip skipped) {
	for _, of := range []struct {
		names []string
		text  string
	}{
		{skip.gated, "%d that wait are gated or lack members, and are not played: %s"},
		{skip.partial, "%d gangs that run lack members, and run without them: %s"},
		{skip.invalid, "%d that wait cannot start, and are not played: %s"},
	} {
		if len(of.names) > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf(of.text, len(of.names), named(of.names)))
		}
	}
	if skip.daemons > 0 {
		c.Notes = append(
			c.Notes,
			fmt.Sprintf("%d pods of DaemonSets wait for their nodes, and are not played", skip.daemons),
		)
	}
}

// waiting returns the gangs and pods that the scheduler would queue, by name.
func (c *snapshotBuilder) waiting(skip *skipped) []waiting {
	gangs := make(map[types.NamespacedName]*waiting)
	var all []*waiting
	for _, pod := range c.unbound {
		if pod.DeletionTimestamp != nil {
			continue
		}
		key, grouped := snapshot.GroupOf(pod)
		w := gangs[key]
		switch {
		case grouped && c.isGang(key) && w != nil:
			w.pods = append(w.pods, pod)
			continue
		case grouped && c.isGang(key):
			w = &waiting{name: key, group: c.groups[key], pods: []*corev1.Pod{pod}}
			gangs[key] = w
		case (snapshot.Unit{Pods: []*corev1.Pod{pod}}).Returns():
			skip.daemons++
			continue
		default:
			w = &waiting{name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pods: []*corev1.Pod{pod}}
			if grouped && c.groups[key] == nil { // it waits for its PodGroup
				skip.gated = append(skip.gated, w.name.String())
				continue
			}
		}
		all = append(all, w)
	}
	running := make(map[types.NamespacedName]bool)
	for _, pod := range c.bound {
		if key, ok := snapshot.GroupOf(pod); ok {
			running[key] = true
		}
	}
	var ready []waiting
	for _, w := range all {
		switch {
		case w.group != nil && running[w.name]:
			skip.partial = append(skip.partial, w.name.String())
		case w.gated():
			skip.gated = append(skip.gated, w.name.String())
		default:
			ready = append(ready, *w)
		}
	}
	slices.SortStableFunc(ready, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name))
	})
	return ready
}

// gated reports whether a pod has a scheduling gate or members are missing.
func (w *waiting) gated() bool {
	lacks := w.group != nil && len(w.pods) < int(w.group.Spec.SchedulingPolicy.Gang.MinCount)
	return lacks || slices.ContainsFunc(w.pods, func(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 })
}

// jobOf returns the job of a waiting gang or pod, and the job's pods in rank order. Its Duration is 0 if none is
// declared. Members that its PodGroup announces for later start with it, since slots would be held for them.
func (c *snapshotBuilder) jobOf(w waiting) (scenario.Job, []*corev1.Pod, error) {
	group, queued, priority := w.group, w.pods[0].CreationTimestamp.Time, corev1helpers.PodPriority(w.pods[0])
	needed := 1
	if group == nil {
		group = &schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.name.Namespace, Name: w.name.Name},
		}
	} else {
		queued, priority = snapshot.QueuedAt(group), ptr.Deref(group.Spec.Priority, 0)
		needed = int(group.Spec.SchedulingPolicy.Gang.MinCount)
	}
	late, err := snapshot.Late(group, w.pods)
	if err != nil {
		return scenario.Job{}, nil, fmt.Errorf("reading its late members: %w", err)
	}
	gang, err := c.view.Gang(group, w.pods, nil, nil)
	if err != nil {
		return scenario.Job{}, nil, fmt.Errorf("reading its wishes: %w", err)
	}
	for _, level := range []string{gang.Required, gang.Preferred, gang.Segment.Level, gang.Spread.Level} {
		if _, known := c.Ledger.Tree.Level(level); level != "" && !known {
			return scenario.Job{}, nil, fmt.Errorf("%w: no node has %s", errLevel, level)
		}
	}
	j := scenario.Job{
		Tenant:      w.name.Namespace,
		Waited:      max(c.Begin.Sub(queued).Round(time.Second), 0),
		Priority:    priority,
		Preemptible: true,
		Gang:        gang,
		Needed:      needed + len(late),
		Sweep:       scenario.Sweep(snapshot.SweepOf(group)),
	}
	for i, shape := range gang.Shapes {
		j.Gang.Shapes[i].Demand = c.translate(shape.Demand)
	}
	for i, m := range gang.Members {
		j.Gang.Members[i].Late = false
		j.Accelerators += j.Gang.Shapes[m.Shape].Demand[c.Accelerator]
	}
	if end := snapshot.ExpectedEnd(group); end.After(c.Begin) {
		j.Duration = roundUp(end.Sub(c.Begin))
	} else {
		for _, pod := range w.pods {
			j.Duration = max(j.Duration, time.Duration(ptr.Deref(pod.Spec.ActiveDeadlineSeconds, 0))*time.Second)
		}
	}
	j.Estimate = j.Duration
	pods := snapshot.InRankOrder(slices.Concat(w.pods, late))
	return rename(j, w.name.Namespace+"."+w.name.Name), pods, nil
}

// rename returns the job with another ID.
func rename(j scenario.Job, id string) scenario.Job {
	j.ID, j.Gang.Name = id, id
	j.Gang.Members = slices.Clone(j.Gang.Members)
	for rank := range j.Gang.Members {
		j.Gang.Members[rank].Name = scenario.PodName(id, rank)
	}
	return j
}

// translate converts a demand of the scheduler's view to the scenario's resources.
func (c *snapshotBuilder) translate(demand topology.Capacity) topology.Capacity {
	out := make(topology.Capacity, len(c.resources))
	for i, name := range c.view.Resources() {
		if at := slices.Index(c.resources, name); at >= 0 {
			out[at] = demand[i]
		}
	}
	return out
}
