package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// builder makes a scenario.
type builder struct {
	*scenario.Scenario

	objects *Objects
	// view is the scheduler's index of the nodes.
	view snapshot.View
	// resources are the scenario's, as Kubernetes names them.
	resources []corev1.ResourceName
	// barred is indexed by node: the rule that bars jobs of a trace from the node, or "". It is nil if no node has one.
	barred []string
	// sweeps numbers the sweeps of a trace's tenants, from 1.
	sweeps map[[2]string]int
}

func newBuilder(s *scenario.Scenario) *builder {
	objects := &Objects{}
	s.Objects = objects
	return &builder{Scenario: s, objects: objects}
}

// nodeOptions are a snapshot's options for the reading of nodes.
type nodeOptions struct {
	// resources are counted beside pods, CPU, memory and accelerators.
	resources []corev1.ResourceName
	// levels are required by gangs, beside the levels that node labels show.
	levels []topology.Level
	// open reports whether a waiting pod tolerates the taint; nil for no taint.
	open func(taint *corev1.Taint) bool
}

// addNodes adds the fleet's nodes, empty.
func (s *builder) addNodes(f fleet.Fleet, g nodeOptions) error {
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
	s.resources = []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, name}
	s.Accelerator = len(s.resources) - 1
	for _, more := range g.resources {
		if !slices.Contains(s.resources, more) {
			s.resources = append(s.resources, more)
		}
	}
	for _, counted := range s.resources {
		s.Resources = append(s.Resources, string(counted))
	}
	nodes := make([]*corev1.Node, len(f.Nodes))
	for i := range f.Nodes {
		nodes[i] = f.Nodes[i].DeepCopy()
		if count, published := devices[nodes[i].Name]; published {
			countAs(nodes[i], name, count)
		}
	}
	if s.view, err = viewOf(nodes, s.resources, g.levels); err != nil {
		return err
	}
	s.Ledger.Tree = s.view.Tree
	s.objects.Nodes = make([]*corev1.Node, len(nodes))
	s.Devices = make([]bool, len(nodes))
	s.Ledger.Free, s.Ledger.Total = make([]topology.Capacity, len(nodes)), make([]topology.Capacity, len(nodes))
	for _, node := range nodes {
		at, _ := s.Ledger.Tree.Index(node.Name)
		_, s.Devices[at] = devices[node.Name]
		s.objects.Nodes[at] = node
		s.Ledger.Total[at] = s.capacity(node.Status.Allocatable)
		s.Ledger.Free[at] = slices.Clone(s.Ledger.Total[at])
	}
	s.close(profile.Accelerators, g.open)
	return nil
}

// countAs lists published accelerators as the node's capacity.
func countAs(node *corev1.Node, name corev1.ResourceName, count int64) {
	amount := *resource.NewQuantity(count, resource.DecimalSI)
	for _, list := range []*corev1.ResourceList{&node.Status.Capacity, &node.Status.Allocatable} {
		if *list == nil {
			*list = make(corev1.ResourceList)
		}
		(*list)[name] = amount
	}
}

// countAccelerators returns the number of nodes that have each of the known resources. Nodes whose drivers publish
// devices count for the first known resource, which the drivers' classes serve.
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

// mostCounted returns the resource that most nodes have. Ties: the first by name.
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

// noteOthers notes accelerators that are not counted.
func (s *builder) noteOthers(others map[corev1.ResourceName]int, counted corev1.ResourceName) {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		s.Notes = append(
			s.Notes,
			fmt.Sprintf("accelerators are counted as %s; what %d nodes have of %s is not", counted, others[name], name),
		)
	}
}

// close closes nodes that are cordoned, under maintenance, or have a taint that is not about accelerators and that no
// waiting pod tolerates. A node with a tolerated taint stays open, and bars the jobs of a trace.
func (s *builder) close(accelerators []string, open func(*corev1.Taint) bool) {
	s.closeMarked()
	for at, node := range s.objects.Nodes {
		foreign := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectPreferNoSchedule || slices.Contains(accelerators, t.Key)
		})
		untolerated := slices.ContainsFunc(foreign, func(t corev1.Taint) bool { return open == nil || !open(&t) })
		s.Closed[at] = s.Closed[at] || node.Spec.Unschedulable || untolerated
		if s.Closed[at] || len(foreign) == 0 {
			continue
		}
		if s.barred == nil {
			s.barred = make([]string, len(s.objects.Nodes))
		}
		s.barred[at] = "untolerated taint " + foreign[0].Key
	}
}

// closeMarked closes nodes that administrators or health agents have closed, and the domain of the level that
// maintenance names.
func (s *builder) closeMarked() {
	s.Closed = make([]bool, len(s.objects.Nodes))
	for at, node := range s.objects.Nodes {
		mark, marked := nodehealth.Default().Of(node)
		if !marked {
			continue
		}
		s.Closed[at] = true
		if mark.Key != topology.KeyMaintenance {
			continue
		}
		if known, ok := s.Ledger.Tree.Level(mark.Value); ok {
			for _, other := range s.Ledger.Tree.Together(at, known) {
				s.Closed[other] = true
			}
		}
	}
}

// capacity converts a resource list to the scenario's resources. A node that lists no pods has room for 110.
func (s *builder) capacity(list corev1.ResourceList) topology.Capacity {
	const usual = 110
	out := make(topology.Capacity, len(s.resources))
	for i, name := range s.resources {
		quantity, ok := list[name]
		switch {
		case !ok && name == corev1.ResourcePods:
			out[i] = usual
		default:
			out[i] = snapshot.AmountOf(name, quantity)
		}
	}
	return out
}

// levelNames lists all levels, the innermost first.
func (s *builder) levelNames() []string {
	names := []string{topology.LevelNode}
	for _, l := range slices.Backward(s.Ledger.Tree.Levels()) {
		names = append(names, l.Name)
	}
	return names
}

// quoted lists names for a message.
func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }
