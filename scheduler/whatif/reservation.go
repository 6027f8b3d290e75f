package whatif

import (
	"cmp"
	"context"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// place says where the head's place is, and whose ends make the room.
func (p *play) place(ctx context.Context, h *head) (*Kept, error) {
	core, wrong := read(h.view, h.gang.group, h.gang.waiting, nil)
	if wrong != nil { // it was read when the place was kept
		return nil, nil
	}
	with, err := p.ask(ctx, h.view, devices.Question{
		Group: h.gang.group, Waiting: h.gang.waiting, Ledger: h.view.Ledger(p.heldFor(h.gang.key)), Gang: core,
	})
	if err != nil {
		return nil, err
	}
	core = with.questions[0].Gang
	k := &Kept{For: h.gang.key, At: instant(h.kept.At), Where: *where(h.view, core, h.kept.Placement)}
	units := with.holds(h.view.Units(p.groups))
	for _, i := range h.awaited(with.questions[0], units) {
		k.Waits = append(k.Waits, Waited{
			Name:         units[i].Name,
			End:          instant(snapshot.Ends(units[i : i+1])[0].End),
			Accelerators: units[i].Accelerators(p.accelerators),
		})
	}
	return k, nil
}

// awaited are the units on the nodes of the head's place that have to end before it can start: of all that end by then, those
// without which there would be no room. The last to end comes first.
func (h *head) awaited(asked devices.Asked, units []snapshot.Unit) []int {
	ends := snapshot.Ends(units)
	lacks := make(map[int]topology.Capacity) // what each node lacks now; not positive if there is room
	for rank, node := range h.kept.Placement.Nodes {
		demand := asked.Gang.Shapes[asked.Gang.Members[rank].Shape].Demand
		if lacks[node] == nil {
			lacks[node] = plus(nil, asked.Ledger.Free[node], -1)
		}
		lacks[node] = plus(lacks[node], demand, 1)
	}
	var gone []int
	for i, end := range ends {
		if end.End <= h.kept.At && frees(lacks, end.Holds, -1) {
			gone = append(gone, i)
		}
	}
	slices.SortStableFunc(gone, func(a, b int) int { return cmp.Compare(ends[a].End, ends[b].End) })
	// Whoever ends first is asked last whether the others would do: the room is made by those who end first.
	return slices.DeleteFunc(reversed(gone), func(i int) bool {
		frees(lacks, ends[i].Holds, 1)
		for _, lack := range lacks {
			if slices.ContainsFunc(lack, func(n int64) bool { return n > 0 }) {
				frees(lacks, ends[i].Holds, -1)
				return false
			}
		}
		return true
	})
}

// frees adds what is held on the nodes to what they lack, in that direction. It reports whether anything is held there.
func frees(lacks map[int]topology.Capacity, holds []topology.Held, sign int64) bool {
	touched := false
	for _, h := range holds {
		if lack, ok := lacks[h.Node]; ok {
			lacks[h.Node], touched = plus(lack, h.Demand, sign), true
		}
	}
	return touched
}

func plus(a, b topology.Capacity, sign int64) topology.Capacity {
	sum := make(topology.Capacity, len(b))
	copy(sum, a)
	for i := range b {
		sum[i] += sign * b[i]
	}
	return sum
}

func reversed(list []int) []int {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}
