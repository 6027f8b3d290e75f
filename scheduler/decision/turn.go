package decision

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// Someday is when work ends of which nobody knows when it ends, if it ends at all: after all ends that are known. The place
// of the first gang is kept free from now on all the same; only nobody can pass it by being short, nor because there would be
// room beside it when all others have left.
const Someday = math.MaxInt64 - 1

// Keep finds the earliest place for the first gang of the queue, which has no room yet. It is nil if nobody's end would help.
func Keep(l topology.Ledger, running []topology.Running, head Ask) *topology.Reservation {
	reserved, short, err := topology.Reserve(l, head.Least(), running)
	if short != nil || err != nil {
		return nil
	}
	return &reserved
}

// Turn is whose turn it is: the first gang of the queue, for which a place is kept.
type Turn struct {
	Head Ask
	// Keeps says which nodes are in the place that was kept last.
	Keeps func(node int) bool
	// Running lists what runs, and when it ends. It is asked only if the place is touched.
	Running func() []topology.Running
	// Apart is set if what both gangs need of a node cannot be counted together, as devices of different demands: where the first has
	// its place then, the other has none, unless it ends before.
	Apart bool
	// Fresh is the place, if it was looked for on this very ledger while the same was running; else nil.
	Fresh *topology.Reservation
}

// Behind places a gang that comes after the first of the queue: only where, and for as long as, that one is not delayed by
// it. The place of the first is looked for anew when the other would touch it, and returned then: that which it has beside
// the other.
func (t Turn) Behind(l topology.Ledger, ask Ask) (Answer, *topology.Reservation) {
	own := Place(l, ask)
	if own.Refusal != nil || !slices.ContainsFunc(own.Placement.Nodes, t.Keeps) {
		return own, nil
	}
	running := t.Running()
	kept := t.Fresh
	if kept == nil {
		kept = Keep(l, running, t.Head)
	}
	if kept == nil { // it cannot be helped by waiting
		return own, nil
	}
	gang := ask.Least()
	apart := t.Apart && (kept.At >= Someday || ask.End == topology.EndUnknown || ask.End > kept.At)
	if apart {
		gang = offPlace(gang, l.Tree.Len(), kept.Placement.Nodes)
	}
	if kept.At >= Someday {
		placement, short, err := kept.Outside(l, t.Head.Least(), gang)
		return contention.NewAnswer(gang, placement, short, err), kept
	}
	if apart || slices.ContainsFunc(gang.Members, func(m topology.Member) bool { return m.Placed }) {
		placement, short, err := topology.Place(l, gang) // this is not what was placed
		own = contention.NewAnswer(gang, placement, short, err)
		if own.Refusal != nil {
			return own, kept
		}
	}
	passer := topology.Passer{Gang: gang, End: ask.End, Placement: own.Placement}
	placement, short, err := kept.AdmitAt(l, running, passer, t.Head.Least())
	out := contention.NewAnswer(gang, placement, short, err)
	if out.Refusal == nil && inTheWay(*kept, placement, ask.End) {
		if moved := Keep(l.Beside(gang, placement), running, t.Head); moved != nil {
			kept = moved
		}
	}
	return out, kept
}

// inTheWay reports whether the place that is kept is not there any more when a gang that may pass has started: the first then
// goes to another one at the same instant, and it is that one which has to be kept from now on.
func inTheWay(kept topology.Reservation, passes topology.Placement, end int64) bool {
	return (end == topology.EndUnknown || end > kept.At) && slices.ContainsFunc(passes.Nodes, func(node int) bool {
		return slices.Contains(kept.Placement.Nodes, node)
	})
}

// ruleKept bars the nodes of the place that is kept, in the words of a shortfall.
const ruleKept = "kept for the first of the queue, whose devices are others"

// offPlace is the gang as it may go anywhere but to these nodes.
func offPlace(gang topology.Gang, nodes int, place []int) topology.Gang {
	gang.Shapes = slices.Clone(gang.Shapes)
	for i, shape := range gang.Shapes {
		barred := make([]string, nodes)
		copy(barred, shape.Barred)
		for _, at := range place {
			barred[at] = cmp.Or(barred[at], ruleKept)
		}
		gang.Shapes[i].Barred = barred
	}
	return gang
}
