package importer

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
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// FromSnapshot returns the scenario of a cluster: its nodes, the units that run on them, and waiting gangs as jobs that
// arrive at the beginning. The jobs of a trace are added; nil for no trace. Notes names what cannot be played. A
// snapshot without nodes, without pods, or without the PodGroups of its pods is bad input, as is everything that New
// refuses.
func FromSnapshot(snap *capture.Snapshot, t *trace.Trace, options scenario.Options) (*scenario.Scenario, error) {
	c := &snapshotBuilder{
		builder: newBuilder(&scenario.Scenario{
			Fleet: "snapshot " + snap.Manifest.Taken.UTC().Format(time.RFC3339), Trace: "snapshot",
			Source: "what waits in the snapshot", Options: withDefaults(options), Begin: snap.Manifest.Taken,
		}),
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
	if err := c.checkKinds(); err != nil {
		return nil, err
	}
	if err := c.build(); err != nil {
		return nil, err
	}
	if options.Costs.Failures > 0 && len(snap.Changes) > 0 {
		return nil, eventsTwice("the recording")
	}
	c.addRunning()
	c.addWaiting()
	if err := c.addTrace(*t); err != nil {
		return nil, err
	}
	c.addChanges()
	return c.Scenario, nil
}

// snapshotBuilder makes a scenario of a snapshot.
type snapshotBuilder struct {
	*builder

	snap   *capture.Snapshot
	groups map[types.NamespacedName]*schedulingv1beta1.PodGroup
	// bound and unbound are the pods with a node and without, except for pods that have ended.
	bound, unbound []*corev1.Pod
	// later names nodes that are created after the beginning.
	later []string
}

// checkKinds refuses a snapshot without the kinds that a scenario needs, and notes other missing kinds.
func (c *snapshotBuilder) checkKinds() error {
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

// build adds the nodes and sorts the pods.
func (c *snapshotBuilder) build() error {
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
	if err := c.addNodes(
		f,
		nodeOptions{resources: c.requested(), levels: c.levels(f.Nodes), open: c.tolerated()},
	); err != nil {
		return err
	}
	if n := len(c.snap.DeviceTaintRules); n > 0 {
		c.Notes = append(
			c.Notes,
			fmt.Sprintf("%d DeviceTaintRules are not looked at: devices that only a rule taints are free for all", n),
		)
	}
	claims := newClaims(c.snap, c.resources[c.Accelerator])
	for _, pods := range [][]*corev1.Pod{c.bound, c.unbound} {
		for i, pod := range pods {
			key, _ := snapshot.GroupOf(pod)
			pods[i] = claims.plain(pod, c.groups[key])
		}
	}
	c.Notes = append(c.Notes, claims.notes()...)
	return nil
}

// tolerated returns a function that reports whether a waiting pod tolerates a taint. Fleets have many nodes with few
// taints, so it caches answers.
func (c *snapshotBuilder) tolerated() func(taint *corev1.Taint) bool {
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

// requested returns the resources that pods request, except for resources that device classes serve: nodes list no
// capacity of these.
func (c *snapshotBuilder) requested() []corev1.ResourceName {
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

// levels returns node labels that gangs require and that are no detected level. They are the outermost levels, as in
// the scheduler.
func (c *snapshotBuilder) levels(nodes []corev1.Node) []topology.Level {
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

// addChanges adds recorded creations and deletions of nodes. A node that is created later fails at the beginning.
func (c *snapshotBuilder) addChanges() {
	number := func(name string) []int {
		at, _ := c.Ledger.Tree.Index(name)
		return []int{at}
	}
	for _, name := range c.later {
		c.Events = append(c.Events, scenario.Event{Kind: trace.Fail, Nodes: number(name)})
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
		c.Events = append(
			c.Events,
			scenario.Event{At: change.At.Round(time.Second), Kind: kind, Nodes: number(change.Name)},
		)
	}
	slices.SortStableFunc(c.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
}

// named lists the first names for a note.
func named(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
