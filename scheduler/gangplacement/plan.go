package gangplacement

import (
	"cmp"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/grid"
)

const (
	planKey   fwk.StateKey = Name + "/plan"
	pinKey    fwk.StateKey = Name + "/pin"
	choiceKey fwk.StateKey = Name + "/choice"
)

// The names of the two placements, as they appear in the scheduler's logs.
const (
	pinned   = "pinned"
	unpinned = "unpinned"
)

// plan is the decision of one cycle for one gang.
type plan struct {
	pins map[string]*pin // by pod name
	// pinned holds the planned nodes and no other; unpinned is nil if it would hold the same nodes.
	pinned, unpinned *fwk.Placement
	// room are the nodes of unpinned that the gang may use, in tree order.
	room []fwk.NodeInfo
	// everywhere is the one of them that is the whole snapshot, which the framework does not distinguish from no
	// placement.
	everywhere *fwk.Placement
	// held counts the pins that were reserved.
	held int
	// asked is set when the filters saw a node of the looser placement, useful when one of these was reserved: if a
	// member fits on none of them, before any other is placed, all of them refuse it.
	asked, useful atomic.Bool
	// looks and order hold, by name, a summary of each node of room and its position there. They are filled when the
	// looser placement is tried, which most plans never need.
	looks map[string]uint64
	order map[string]int
	// question is the plan's question, and its inputs.
	question *waiting.Question
	placed   contention.Placed
	// guard excludes leased capacity from the looser placement; nil if no lease binds the gang.
	guard *waiting.Guard
}

// pin is the node of one member.
type pin struct {
	node string
	// look is the digest of the node when it was chosen.
	look uint64
	// tried is set when the filters were asked, held when the node was reserved.
	tried, held atomic.Bool
}

// Clone returns the plan itself: all pods of a cycle share it.
func (p *plan) Clone() fwk.StateData { return p }

// Clone returns the pin itself.
func (p *pin) Clone() fwk.StateData { return p }

// placements lists the plan's placements, best first.
func (p *plan) placements() []*fwk.Placement {
	if p.unpinned == nil {
		return []*fwk.Placement{p.pinned}
	}
	return []*fwk.Placement{p.pinned, p.unpinned}
}

// uses reports whether a member is to have the node.
func (p *plan) uses(node string) bool {
	for _, pin := range p.pins {
		if pin.node == node {
			return true
		}
	}
	return false
}

// tryLoose looks at the nodes of the looser placement before anything is put on them.
func (p *plan) tryLoose() {
	if p.looks != nil {
		return
	}
	p.looks, p.order = make(map[string]uint64, len(p.room)), make(map[string]int, len(p.room))
	for i, info := range p.room {
		p.looks[info.Node().Name], p.order[info.Node().Name] = look(info), i
	}
}

// closes reports whether the gang may not use a node of the looser placement.
func (p *plan) closes(node string) bool {
	_, open := p.order[node]
	return !open
}

// choose is the node for a member in the looser placement, of those that its filters left: its planned one, or the one
// nearest to that in tree order, the earlier of two.
func (p *plan) choose(pod string, feasible []fwk.NodeInfo) string {
	home := 0
	if pin := p.pins[pod]; pin != nil {
		home = p.order[pin.node]
	}
	distance := func(n fwk.NodeInfo) (int, int) {
		at := p.order[n.Node().Name]
		return max(at-home, home-at), at
	}
	best := slices.MinFunc(feasible, func(a, b fwk.NodeInfo) int {
		da, ia := distance(a)
		db, ib := distance(b)
		return cmp.Or(cmp.Compare(da, db), cmp.Compare(ia, ib))
	})
	return best.Node().Name
}

// planOf is the plan of the cycle, nil for groups that are no gangs.
func planOf(state fwk.PodGroupCycleState) *plan {
	if state == nil {
		return nil
	}
	data, err := state.Read(planKey)
	if err != nil {
		return nil
	}
	out, _ := data.(*plan)
	return out
}

// placed is the part of the snapshot's concrete type that identifies the placement being tried.
type placed interface{ GetPlacement() *fwk.Placement }

// newPlan returns the plan that gives the members of a question their nodes.
func (p *GangPlacement) newPlan(
	x *waiting.Question,
	gang topology.Gang,
	placement topology.Placement,
	q question,
) *plan {
	view := x.View
	out := &plan{
		pins: make(map[string]*pin, len(q.waiting)), pinned: &fwk.Placement{Name: pinned},
		question: x, placed: contention.Placed{ID: waiting.IDOf(q.key), Gang: gang, Placement: placement},
	}
	var nodes []int
	for rank, at := range placement.Nodes {
		if m := gang.Members[rank]; !m.Placed && !m.Late {
			out.pins[m.Name] = &pin{node: view.Tree.Node(at), look: look(view.Infos[at])}
			nodes = append(nodes, at)
		}
	}
	slices.Sort(nodes)
	for _, at := range slices.Compact(nodes) {
		out.pinned.Nodes = append(out.pinned.Nodes, view.Infos[at])
	}
	// Without a way to distinguish the placements there must be only one.
	if _, ok := p.handle.SnapshotSharedLister().(placed); ok && loosens(gang) {
		out.loosen(view, q.parent)
	}
	switch len(q.parent.Nodes) {
	case len(out.pinned.Nodes):
		out.everywhere = out.pinned
	default:
		if out.unpinned != nil && len(out.unpinned.Nodes) == len(q.parent.Nodes) {
			out.everywhere = out.unpinned
		}
	}
	return out
}

// loosen adds the looser placement if it has nodes that the planned one has not. A gang that may go anywhere is offered
// all nodes, and Filter closes some: a list of the others would have to be looked up by the framework in each cycle.
func (p *plan) loosen(view snapshot.View, all *fwk.Placement) {
	p.room = allowed(view, p.placed.Placement, p.placed.Gang)
	if len(p.room) <= len(p.pinned.Nodes) {
		return
	}
	p.unpinned = &fwk.Placement{Name: unpinned, Nodes: p.room}
	if _, within := view.Tree.Level(p.placed.Gang.Required); !within {
		p.unpinned.Nodes = all.Nodes
	}
}

// loosens reports whether the framework may choose the nodes itself: it knows the required domain, since it is offered
// no other node, but not the rules about how members are divided.
func loosens(g topology.Gang) bool {
	return g.Segment.Size == 0 && g.Spread.Max == 0 && g.Spares.Nodes == 0 && g.PerNode == 0 && g.Box == (grid.Size{})
}

// allowed are the nodes that at least one shape may use: of the required domain that was chosen, or of the fleet.
func allowed(view snapshot.View, placement topology.Placement, gang topology.Gang) []fwk.NodeInfo {
	may := func(node int) bool {
		return view.Infos[node] != nil &&
			slices.ContainsFunc(gang.Shapes, func(s topology.Shape) bool { return mayUse(s, node) })
	}
	var out []fwk.NodeInfo
	if level, ok := view.Tree.Level(gang.Required); ok && len(placement.Nodes) > 0 {
		for _, node := range view.Tree.Together(placement.Nodes[0], level) {
			if may(node) {
				out = append(out, view.Infos[node])
			}
		}
		return out
	}
	for node, info := range view.Infos {
		if may(node) {
			out = append(out, info)
		}
	}
	return out
}

func mayUse(s topology.Shape, node int) bool { return s.Barred == nil || s.Barred[node] == "" }

// current is the plan's placement that is being tried, nil if it is neither.
func (p *GangPlacement) current(plan *plan) *fwk.Placement {
	lister, ok := p.handle.SnapshotSharedLister().(placed)
	if !ok {
		return plan.pinned
	}
	if at := lister.GetPlacement(); at != nil {
		return at
	}
	return plan.everywhere
}

// seeCondition is the whole message to the framework, which writes the text into every member whenever it changes.
const seeCondition = "the gang has to wait; its PodGroup's condition " + explanation.Condition + " says why"

// infeasible rejects the group. The FitError makes the framework treat it as an answer, not as a fault: it is neither
// logged as an error for every member nor slows the loop down. Its plugin set must exist: the queue takes it over for
// every member and writes to it when PreEnqueue rejects one later (1.37.1 panics on a nil set, for instance when a
// member of a waiting gang is deleted). It is made anew for each cycle, so the loop and the queue never share one.
//
// If no pod that runs has a lower priority, and the gang has no survivors to move, it says that preemption is not worth
// a look: in-tree DefaultPreemption begins by cloning every node and the list of members of every PodGroup there is.
func infeasible(q question) *fwk.Status {
	code := fwk.UnschedulableAndUnresolvable
	if len(q.running) > 0 && q.needed > 0 ||
		slices.ContainsFunc(q.parent.Nodes, func(n fwk.NodeInfo) bool { return victims(n, q.waiting[0]) }) {
		code = fwk.Unschedulable
	}
	return rejected(q, code)
}

func rejected(q question, code fwk.Code) *fwk.Status {
	status := fwk.NewStatus(code)
	return status.WithError(&framework.FitError{
		Pod:         q.waiting[0],
		NumAllNodes: q.reported,
		Diagnosis: framework.Diagnosis{
			NodeToStatus:         framework.NewDefaultNodeToStatus(),
			PreFilterMsg:         seeCondition,
			UnschedulablePlugins: sets.New(Name),
		},
	})
}

// victims reports whether a pod of a lower priority is on the node.
func victims(node fwk.NodeInfo, pod *corev1.Pod) bool {
	return slices.ContainsFunc(node.GetPods(), func(other fwk.PodInfo) bool {
		return corev1helpers.PodPriority(other.GetPod()) < corev1helpers.PodPriority(pod)
	})
}
