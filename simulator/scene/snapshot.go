package scene

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/badinput"
	"github.com/lockstep-project/lockstep/simulator/capture"
	"github.com/lockstep-project/lockstep/simulator/fleet"
	"github.com/lockstep-project/lockstep/simulator/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// FromSnapshot makes the scene of a cluster as it was: its nodes, what runs on them, and what waits there as jobs that are there from
// the beginning. The jobs of a trace come on top; nil is none. What cannot be played as it is, Notes tell by name. A snapshot
// without nodes, without pods, or without the PodGroups that its pods are in is bad input, as is all that is for New.
func FromSnapshot(snap *capture.Snapshot, t *trace.Trace, options Options) (*Scene, error) {
	c := &cluster{
		stage: &stage{Scene: &Scene{
			Fleet: "snapshot " + snap.Manifest.Taken.UTC().Format(time.RFC3339), Trace: "snapshot",
			Source: "what waits in the snapshot", Options: options.whole(), Begin: snap.Manifest.Taken,
		}},
		snap: snap, groups: make(map[types.NamespacedName]*schedulingv1beta1.PodGroup, len(snap.PodGroups)),
	}
	if c.Begin.IsZero() {
		c.Fleet, c.Begin = "snapshot", beginning()
	}
	if t == nil {
		t = &trace.Trace{}
	} else {
		c.Trace, c.Source, c.Synthetic = t.Name, t.Source, t.Synthetic
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	if err := c.build(); err != nil {
		return nil, err
	}
	c.run()
	c.wait()
	if err := c.add(*t); err != nil {
		return nil, err
	}
	c.change()
	return c.Scene, nil
}

// cluster is a scene that is being made of a snapshot.
type cluster struct {
	*stage
	snap   *capture.Snapshot
	groups map[types.NamespacedName]*schedulingv1beta1.PodGroup
	// bound and unbound are the pods that count, with a node and without; those that have ended hold nothing.
	bound, unbound []*corev1.Pod
	// later are nodes that come when the scene has begun.
	later []string
}

// complete refuses a snapshot that lacks what the scene is made of, and says what else it lacks.
func (c *cluster) complete() error {
	var missing []string
	for _, kind := range c.snap.Missing() {
		switch kind {
		case "nodes", "pods":
			return lacks(kind, "take it again with all kinds")
		case "podgroups":
			grouped := slices.IndexFunc(c.snap.Pods, func(p *corev1.Pod) bool { return p.Spec.SchedulingGroup != nil })
			if grouped >= 0 {
				pod := c.snap.Pods[grouped]
				return lacks(kind, fmt.Sprintf("pod %s/%s is in one; take it again with them", pod.Namespace, pod.Name))
			}
		}
		missing = append(missing, kind)
	}
	if len(c.snap.Nodes) == 0 {
		return &badinput.Error{
			Where: "the snapshot",
			What:  "the cluster has no nodes",
			Mend:  "take one of another cluster",
		}
	}
	if len(missing) > 0 {
		c.Notes = append(
			c.Notes,
			"the snapshot has no "+strings.Join(missing, ", ")+", and it is not known whether there were any",
		)
	}
	c.Notes = append(c.Notes, c.snap.Warnings...)
	return nil
}

func lacks(kind, mend string) error {
	return &badinput.Error{Where: "the snapshot", What: "it says nothing of " + kind, Mend: mend}
}

// build puts the nodes into the scene, and sorts out pods.
func (c *cluster) build() error {
	for _, group := range c.snap.PodGroups {
		c.groups[types.NamespacedName{Namespace: group.Namespace, Name: group.Name}] = group
	}
	for _, pod := range c.snap.Pods {
		switch {
		case snapshot.Ended(pod):
		case pod.Spec.NodeName != "":
			c.bound = append(c.bound, pod)
		default:
			c.unbound = append(c.unbound, pod)
		}
	}
	f := fleet.Fleet{Name: c.Fleet}
	there := make(map[string]bool, len(c.snap.Nodes))
	for _, node := range c.snap.Nodes {
		f.Nodes, there[node.Name] = append(f.Nodes, *node), true
	}
	for _, change := range c.snap.Changes {
		if change.Node != nil && !there[change.Name] {
			f.Nodes, c.later, there[change.Name] = append(f.Nodes, *change.Node), append(c.later, change.Name), true
		}
	}
	for _, slice := range c.snap.ResourceSlices {
		f.Slices = append(f.Slices, *slice)
	}
	if err := c.settle(f, ground{resources: c.asked(), levels: c.levels(f.Nodes), open: c.tolerated()}); err != nil {
		return err
	}
	if n := len(c.snap.DeviceTaintRules); n > 0 {
		c.Notes = append(
			c.Notes,
			fmt.Sprintf("%d DeviceTaintRules are not looked at: devices that only a rule taints are free for all", n),
		)
	}
	claims := newClaims(c.snap, c.Resources[c.Accelerator])
	for _, pods := range [][]*corev1.Pod{c.bound, c.unbound} {
		for i, pod := range pods {
			key, _ := snapshot.GroupOf(pod)
			pods[i] = claims.plain(pod, c.groups[key])
		}
	}
	c.Notes = append(c.Notes, claims.notes()...)
	return nil
}

// tolerated is who asks whether somebody who waits tolerates a taint. Fleets have many nodes with few taints, so answers are kept.
func (c *cluster) tolerated() func(taint *corev1.Taint) bool {
	known := make(map[string]bool)
	return func(taint *corev1.Taint) bool {
		answer, asked := known[taint.ToString()]
		if !asked {
			answer = slices.ContainsFunc(c.unbound, func(p *corev1.Pod) bool {
				return corev1helpers.TolerationsTolerateTaint(klog.Logger{}, p.Spec.Tolerations, taint, true)
			})
			known[taint.ToString()] = answer
		}
		return answer
	}
}

// asked are the resources that pods ask for, but for those that stand for devices which are no accelerators: of these nobody counts
// what nodes have.
func (c *cluster) asked() []corev1.ResourceName {
	served := func(name corev1.ResourceName) bool {
		for _, class := range c.snap.DeviceClasses {
			if of := class.Spec.ExtendedResourceName; of != nil && *of == string(name) {
				return true
			}
		}
		return false
	}
	return slices.DeleteFunc(snapshot.Resources(slices.Concat(c.bound, c.unbound)), served)
}

// levels are node labels that gangs require and that are no level by themselves: as the outermost, as the scheduler has it.
func (c *cluster) levels(nodes []corev1.Node) []topology.Level {
	labeled := make([]topology.Node, len(nodes))
	for i, node := range nodes {
		labeled[i] = topology.Node{Name: node.Name, Labels: node.Labels}
	}
	detected := topology.DetectLevels(labeled)
	var more []topology.Level
	asked := make(map[string]bool)
	for _, group := range c.snap.PodGroups {
		required := snapshot.Required(group)
		if asked[required] {
			continue
		}
		asked[required] = true
		is := func(l topology.Level) bool { return l.Name == required || l.Key == required }
		carried := slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Labels[required] != "" })
		if carried && required != corev1.LabelHostname && !slices.ContainsFunc(slices.Concat(detected, more), is) {
			more = append(more, topology.Level{Name: required, Key: required})
		}
	}
	slices.SortFunc(more, func(a, b topology.Level) int { return cmp.Compare(a.Key, b.Key) })
	return more
}

// change lets nodes come and go as was recorded. What comes later is not there before.
func (c *cluster) change() {
	number := func(name string) []int {
		at, _ := c.Ledger.Tree.Index(name)
		return []int{at}
	}
	for _, name := range c.later {
		c.Events = append(c.Events, Event{Kind: trace.Fail, Nodes: number(name)})
	}
	gone := make(map[string]bool)
	for _, name := range c.later {
		gone[name] = true
	}
	for _, change := range c.snap.Changes {
		if _, known := c.Ledger.Tree.Index(change.Name); !known || gone[change.Name] == (change.Node == nil) {
			continue
		}
		kind := trace.Return
		if change.Node == nil {
			kind = trace.Fail
		}
		gone[change.Name] = change.Node == nil
		c.Events = append(c.Events, Event{At: change.At.Round(time.Second), Kind: kind, Nodes: number(change.Name)})
	}
	slices.SortStableFunc(c.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
}

// named are the first of some names, for a note.
func named(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
