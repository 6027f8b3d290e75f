package devices

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// mostInDomain is the largest number of nodes of one clique that NVIDIA's driver connects for one ComputeDomain
	// (maxNodesPerIMEXDomain).
	mostInDomain = 18
	// drain is the time within which devices are expected to be given back by themselves: by a node that leaves a
	// ComputeDomain without users, whose daemon takes tens of seconds to end, and by the next leftover claim.
	drain = 30 * time.Second
	// ruleOtherDomain bars a node from members that have no device to wait for there.
	ruleOtherDomain = "another ComputeDomain"
)

// errLimit is returned if a gang's own division is too large for a ComputeDomain.
var errLimit = fmt.Errorf("a clique has more than %d nodes, and a ComputeDomain connects no more of one", mostInDomain)

// channels are the ComputeDomains that give the members of a gang their channels, by pod.
type channels map[string]types.UID

// channels reads them.
func (s *Stock) channels(q Question) (channels, error) {
	read := channels{}
	for _, pod := range q.Waiting {
		domain, fault := s.domainOf(pod, q.Group)
		if fault != "" {
			return nil, fmt.Errorf("%w: %s", ErrClaims, fault)
		}
		if domain != "" {
			read[pod.Name] = domain
		}
	}
	return read, nil
}

// own reports whether the gang is of the ComputeDomain. One of several is taken to be welcome on the nodes of each:
// such a node serves the others of its domains a little later.
func (c channels) own(domain types.UID) bool {
	for _, of := range c {
		if of == domain {
			return true
		}
	}
	return false
}

// connected adds the rules of channels that go beyond their devices: a node in another ComputeDomain is full until it
// has left that, a node with a clique label that cannot be read is barred, and a ComputeDomain connects at most
// mostInDomain nodes of one clique.
func (s *Stock) connected(q Question, asked Asked, of channels) (Asked, error) {
	if len(of) == 0 {
		return asked, nil
	}
	with := make([]bool, len(asked.Gang.Shapes))
	for _, m := range asked.Gang.Members {
		with[m.Shape] = with[m.Shape] || of[m.Name] != ""
	}
	busy := s.busy(q, of)
	asked.kept = map[int]topology.Capacity{}
	for shape, connects := range with {
		if connects {
			asked.Gang.Shapes[shape] = outsideCliques(q, asked, asked.Gang.Shapes[shape])
			asked.wait(shape, busy)
		}
	}
	asked.draining = asked.drained(busy, q.Now.Add(drain))
	connects := len(of)
	for _, m := range asked.Gang.Members {
		if m.Placed {
			connects++
		}
	}
	limits, err := limited(asked, connects)
	asked.Gang.Spread, asked.Gang.PerNode = limits.Spread, limits.PerNode
	return asked, err
}

// busy are the nodes in other ComputeDomains than the gang's, by tree number.
func (s *Stock) busy(q Question, of channels) map[int]types.UID {
	busy := map[int]types.UID{}
	for _, info := range q.Nodes {
		domain := types.UID(info.Node().Labels[labelDomain])
		if domain == "" || of.own(domain) || s.vacated[domain] {
			continue
		}
		if at, ok := q.Ledger.Tree.Index(info.Node().Name); ok {
			busy[at] = domain
		}
	}
	return busy
}

// wait makes busy nodes full for the shape: their channels are free when they leave the ComputeDomain that they are in.
func (a Asked) wait(shape int, busy map[int]types.UID) {
	column := len(a.Gang.Shapes[shape].Demand) - 1
	if len(a.demands) == 0 || column < a.first { // its devices are assigned; it can go nowhere else
		a.Gang.Shapes[shape] = barredFrom(a.Gang.Shapes[shape], busy, a.Ledger.Tree.Len())
		return
	}
	for at := range busy {
		room := a.Ledger.Free[at][column]
		if room > 0 && !isBarred(a.Gang.Shapes[shape], at) {
			a.kept[at] = with(a.kept[at], column, room)
		}
		a.Ledger.Free[at][column] = 0 // the row is this question's own
	}
}

func barredFrom(shape topology.Shape, busy map[int]types.UID, nodes int) topology.Shape {
	barred := make([]string, nodes)
	copy(barred, shape.Barred)
	for at := range busy {
		barred[at] = cmp.Or(barred[at], ruleOtherDomain)
	}
	shape.Barred = barred
	return shape
}

func isBarred(shape topology.Shape, node int) bool {
	return shape.Barred != nil && shape.Barred[node] != ""
}

// with is the capacity with another number of one resource.
func with(c topology.Capacity, resource int, value int64) topology.Capacity {
	longer := make(topology.Capacity, max(len(c), resource+1))
	copy(longer, c)
	longer[resource] = value
	return longer
}

// drained returns the ComputeDomains on their way off nodes, with the channels that they give back. Where a pod uses
// one there is nothing to give back yet: that pod has the channel.
func (a Asked) drained(busy map[int]types.UID, until time.Time) []snapshot.Unit {
	holds := map[types.UID][]topology.Held{}
	for at, room := range a.kept {
		holds[busy[at]] = append(holds[busy[at]], topology.Held{Node: at, Demand: room})
	}
	units := make([]snapshot.Unit, 0, len(holds))
	for domain, held := range holds {
		slices.SortFunc(held, func(x, y topology.Held) int { return cmp.Compare(x.Node, y.Node) })
		units = append(units, snapshot.Draining(domain, until, held))
	}
	slices.SortFunc(units, func(x, y snapshot.Unit) int { return cmp.Compare(x.Domain, y.Domain) })
	return units
}

// Note returns clauses that follow the reason for the gang's wait: the nodes and devices that will be free by
// themselves; "" for none.
func (a Asked) Note() string { return a.keptNote() + a.leftNote() }

// keptNote is about the nodes that are full only because they are still in another ComputeDomain.
func (a Asked) keptNote() string {
	switch n := len(a.kept); n {
	case 0:
		return ""
	case 1:
		return "; 1 node is still in another ComputeDomain that has no users there any more"
	default:
		return fmt.Sprintf("; %d nodes are still in other ComputeDomains that have no users there any more", n)
	}
}

// outsideCliques bars the nodes whose clique label cannot be read.
func outsideCliques(q Question, asked Asked, shape topology.Shape) topology.Shape {
	nodes := make([]*corev1.Node, 0)
	for _, info := range q.Nodes {
		if _, _, err := topology.CliqueOf(info.Node().Labels); errors.Is(err, topology.ErrPartition) {
			nodes = append(nodes, info.Node())
		}
	}
	if len(nodes) == 0 {
		return shape
	}
	first := slices.MinFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	rule := fmt.Sprintf("%s (%s=%s)", topology.ErrPartition, topology.LabelClique, first.Labels[topology.LabelClique])
	barred := make([]string, asked.Ledger.Tree.Len())
	copy(barred, shape.Barred)
	for _, node := range nodes {
		if at, ok := asked.Ledger.Tree.Index(node.Name); ok {
			barred[at] = cmp.Or(barred[at], rule)
		}
	}
	shape.Barred = barred
	return shape
}
