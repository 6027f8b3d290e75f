package scene

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
	"github.com/lockstep-project/lockstep/topology"
)

// isGang reports whether the PodGroup of that name is there and starts as a whole; pods of all others start one by one.
func (c *cluster) isGang(key types.NamespacedName) bool {
	group := c.groups[key]
	return group != nil && group.Spec.SchedulingPolicy.Gang != nil
}

// waiting is a gang, or a single pod, that has no nodes yet. Group is nil for a pod in no gang.
type waiting struct {
	name  types.NamespacedName
	group *schedulingv1beta1.PodGroup
	pods  []*corev1.Pod
}

// left are those that are not played, by the reason.
type left struct {
	gated, partial, wrong []string
	lost                  int
}

// wait makes jobs of what waits: whole gangs, and single pods. Of what the scheduler would not look at yet (gated pods, gangs that
// lack members) and of what it could not read a note is made.
func (c *cluster) wait() {
	var l left
	taken := make(map[string]bool)
	unsaid := 0
	for _, w := range c.waiting(&l) {
		j, err := c.waits(w)
		if err != nil {
			l.wrong = append(l.wrong, fmt.Sprintf("%s (%s)", w.name, err))
			continue
		}
		if j.Duration == 0 {
			j.Duration = up(c.Options.Unsaid)
			unsaid++
		}
		for taken[j.ID] { // a gang and a pod may have one name
			j = j.called(j.ID + ".pod")
		}
		taken[j.ID] = true
		c.Jobs = append(c.Jobs, j)
	}
	c.noteLeft(l)
	if unsaid > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf(
			"of %d that wait nobody says how long they run: %s each is assumed", unsaid, c.Options.Unsaid,
		))
	}
}

func (c *cluster) noteLeft(l left) {
	for _, of := range []struct {
		names []string
		text  string
	}{
		{l.gated, "%d that wait are gated or lack members, and are not played: %s"},
		{l.partial, "%d gangs that run lack members, and run without them: %s"},
		{l.wrong, "%d that wait cannot start, and are not played: %s"},
	} {
		if len(of.names) > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf(of.text, len(of.names), named(of.names)))
		}
	}
	if l.lost > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d pods of DaemonSets wait for their nodes, and are not played", l.lost))
	}
}

// waiting are the gangs and pods that a scheduler would look at, by name.
func (c *cluster) waiting(l *left) []waiting {
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
			l.lost++
			continue
		default:
			w = &waiting{name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pods: []*corev1.Pod{pod}}
			if grouped && c.groups[key] == nil { // it waits for its PodGroup
				l.gated = append(l.gated, w.name.String())
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
			l.partial = append(l.partial, w.name.String())
		case w.gated():
			l.gated = append(l.gated, w.name.String())
		default:
			ready = append(ready, *w)
		}
	}
	slices.SortStableFunc(ready, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name))
	})
	return ready
}

// gated reports whether the scheduler would not look at it yet.
func (w *waiting) gated() bool {
	lacks := w.group != nil && len(w.pods) < int(w.group.Spec.SchedulingPolicy.Gang.MinCount)
	return lacks || slices.ContainsFunc(w.pods, func(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 })
}

// waits is a job that is there from the beginning. Its Duration is 0 if nobody says it. Members that its PodGroup announces for
// later start with it, since a place would be held for them.
func (c *cluster) waits(w waiting) (Job, error) {
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
		return Job{}, fmt.Errorf("reading its late members: %w", err)
	}
	gang, err := c.view.Gang(group, w.pods, nil, nil)
	if err != nil {
		return Job{}, fmt.Errorf("reading its wishes: %w", err)
	}
	for _, level := range []string{gang.Required, gang.Preferred, gang.Segment.Level, gang.Spread.Level} {
		if _, known := c.Ledger.Tree.Level(level); level != "" && !known {
			return Job{}, fmt.Errorf("%w: no node has %s", errLevel, level)
		}
	}
	j := Job{
		Tenant:      w.name.Namespace,
		Waited:      max(c.Begin.Sub(queued).Round(time.Second), 0),
		Priority:    priority,
		Preemptible: true,
		Gang:        gang,
		Needed:      needed + len(late),
		Group:       w.group,
		Pods:        snapshot.InRankOrder(slices.Concat(w.pods, late)),
	}
	for i, shape := range gang.Shapes {
		j.Gang.Shapes[i].Demand = c.translate(shape.Demand)
	}
	for i, m := range gang.Members {
		j.Gang.Members[i].Late = false
		j.Accelerators += j.Gang.Shapes[m.Shape].Demand[c.Accelerator]
	}
	if end := snapshot.ExpectedEnd(group); end.After(c.Begin) {
		j.Duration = up(end.Sub(c.Begin))
	} else {
		for _, pod := range w.pods {
			j.Duration = max(j.Duration, time.Duration(ptr.Deref(pod.Spec.ActiveDeadlineSeconds, 0))*time.Second)
		}
	}
	j.Estimate = j.Duration
	return j.called(w.name.Namespace + "." + w.name.Name), nil
}

// called is the job with that name.
func (j Job) called(id string) Job {
	j.ID, j.Gang.Name = id, id
	j.Gang.Members = slices.Clone(j.Gang.Members)
	for rank := range j.Gang.Members {
		j.Gang.Members[rank].Name = PodName(id, rank)
	}
	return j
}

// translate is what the scheduler's view counts, by the scene's resources.
func (c *cluster) translate(demand topology.Capacity) topology.Capacity {
	out := make(topology.Capacity, len(c.Resources))
	for i, name := range c.view.Resources() {
		if at := slices.Index(c.Resources, name); at >= 0 {
			out[at] = demand[i]
		}
	}
	return out
}
