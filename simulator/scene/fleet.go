package scene

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/badinput"
	"github.com/lockstep-project/lockstep/simulator/fleet"
	"github.com/lockstep-project/lockstep/topology"
)

// stage is a scene that is being made.
type stage struct {
	*Scene
	// view is how the scheduler reads the nodes.
	view snapshot.View
	// barred says of each node by which rule jobs of a trace may not use it; nil for none.
	barred []string
}

// ground is what a snapshot needs of the nodes beyond what every fleet has.
type ground struct {
	// resources are asked for beside pods, CPU, memory and accelerators, by name; levels are required beside those that nodes'
	// labels show.
	resources []corev1.ResourceName
	levels    []topology.Level
	// open reports whether somebody who waits may use nodes with the taint.
	open func(taint *corev1.Taint) bool
}

// settle puts the fleet's nodes into the scene, empty.
func (s *stage) settle(f fleet.Fleet, g ground) error {
	profile, err := config.Placement(nil)
	if err != nil {
		return fmt.Errorf("reading which resources are accelerators: %w", err)
	}
	devices := f.Accelerators()
	counted := countAccelerators(f.Nodes, devices, profile.Accelerators)
	name, err := mostCounted(counted)
	if err != nil {
		return err
	}
	delete(counted, name)
	s.noteOthers(counted, name)
	s.Resources = []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, name}
	s.Accelerator = len(s.Resources) - 1
	for _, more := range g.resources {
		if !slices.Contains(s.Resources, more) {
			s.Resources = append(s.Resources, more)
		}
	}
	nodes := make([]*corev1.Node, len(f.Nodes))
	for i := range f.Nodes {
		nodes[i] = f.Nodes[i].DeepCopy()
		if count, published := devices[nodes[i].Name]; published {
			countAs(nodes[i], name, count)
		}
	}
	if s.view, err = viewOf(nodes, s.Resources, g.levels); err != nil {
		return err
	}
	s.Ledger.Tree = s.view.Tree
	s.Nodes = make([]*corev1.Node, len(nodes))
	s.Devices = make([]bool, len(nodes))
	s.Ledger.Free, s.Ledger.Total = make([]topology.Capacity, len(nodes)), make([]topology.Capacity, len(nodes))
	for _, node := range nodes {
		at, _ := s.Ledger.Tree.Index(node.Name)
		_, s.Devices[at] = devices[node.Name]
		s.Nodes[at] = node
		s.Ledger.Total[at] = s.capacity(node.Status.Allocatable)
		s.Ledger.Free[at] = slices.Clone(s.Ledger.Total[at])
	}
	s.close(profile.Accelerators, g.open)
	return nil
}

// countAs lets a node have so many accelerators, as capacity.
func countAs(node *corev1.Node, name corev1.ResourceName, count int64) {
	amount := *resource.NewQuantity(count, resource.DecimalSI)
	for _, list := range []*corev1.ResourceList{&node.Status.Capacity, &node.Status.Allocatable} {
		if *list == nil {
			*list = make(corev1.ResourceList)
		}
		(*list)[name] = amount
	}
}

// countAccelerators is on how many nodes each of the known resources is found. Devices of drivers go by the name that their class
// serves for the first of the known ones.
func countAccelerators(nodes []corev1.Node, devices map[string]int64, known []string) map[corev1.ResourceName]int {
	count := make(map[corev1.ResourceName]int)
	for i := range nodes {
		for _, name := range known {
			if amount, ok := nodes[i].Status.Allocatable[corev1.ResourceName(name)]; ok && !amount.IsZero() {
				count[corev1.ResourceName(name)]++
			}
		}
	}
	if len(devices) > 0 && len(known) > 0 {
		count[corev1.ResourceName(known[0])] += len(devices)
	}
	return count
}

// mostCounted is the resource that the fleet counts its accelerators by: of several that which most nodes have, and then the first
// by name.
func mostCounted(count map[corev1.ResourceName]int) (corev1.ResourceName, error) {
	best := corev1.ResourceName("")
	for name, n := range count {
		if best == "" || cmp.Or(cmp.Compare(n, count[best]), cmp.Compare(best, name)) > 0 {
			best = name
		}
	}
	if best == "" {
		return "", &badinput.Error{
			What: "the fleet has no accelerators", Mend: "name one whose nodes have some, as capacity or as devices",
		}
	}
	return best, nil
}

// noteOthers says of which accelerators nothing is said.
func (s *stage) noteOthers(others map[corev1.ResourceName]int, counted corev1.ResourceName) {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		s.Notes = append(
			s.Notes,
			fmt.Sprintf("accelerators are counted as %s; what %d nodes have of %s is not", counted, others[name], name),
		)
	}
}

// close closes nodes that are cordoned or under maintenance, and those with a taint that is about no accelerator and nobody may
// use. From tainted nodes that somebody may use, all others are barred.
func (s *stage) close(accelerators []string, open func(*corev1.Taint) bool) {
	s.closeForMaintenance()
	for at, node := range s.Nodes {
		foreign := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectPreferNoSchedule || slices.Contains(accelerators, t.Key)
		})
		nobody := slices.ContainsFunc(foreign, func(t corev1.Taint) bool { return open == nil || !open(&t) })
		s.Closed[at] = s.Closed[at] || node.Spec.Unschedulable || nobody
		if s.Closed[at] || len(foreign) == 0 {
			continue
		}
		if s.barred == nil {
			s.barred = make([]string, len(s.Nodes))
		}
		s.barred[at] = "untolerated taint " + foreign[0].Key
	}
}

// closeForMaintenance closes nodes that are marked, with the domain that their mark names.
func (s *stage) closeForMaintenance() {
	s.Closed = make([]bool, len(s.Nodes))
	for at, node := range s.Nodes {
		level, marked := snapshot.Maintenance(node)
		if !marked {
			continue
		}
		s.Closed[at] = true
		if known, ok := s.Ledger.Tree.Level(level); ok {
			for _, other := range s.Ledger.Tree.Together(at, known) {
				s.Closed[other] = true
			}
		}
	}
}

// capacity is a resource list by the scene's resources; a node that does not say how many pods it takes has room for 110.
func (s *stage) capacity(list corev1.ResourceList) topology.Capacity {
	const usual = 110
	out := make(topology.Capacity, len(s.Resources))
	for i, name := range s.Resources {
		quantity, ok := list[name]
		switch {
		case !ok && name == corev1.ResourcePods:
			out[i] = usual
		case name == corev1.ResourceCPU:
			out[i] = quantity.MilliValue()
		default:
			out[i] = quantity.Value()
		}
	}
	return out
}

// levelNames are all levels, the innermost first.
func (s *stage) levelNames() []string {
	names := []string{topology.LevelNode}
	for _, l := range slices.Backward(s.Ledger.Tree.Levels()) {
		names = append(names, l.Name)
	}
	return names
}

// quoted is a list of names as people read it.
func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }
