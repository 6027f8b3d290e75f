package measure

import (
	"time"

	"github.com/lockstep-project/lockstep/topology"
)

// resizes notes that an elastic job whose work scales continues with other members, from its last checkpoint.
func (t *Tally) resizes(job int) {
	j, of := &t.jobs[job], &t.scene.Jobs[job]
	if j.phase != running || !of.Shrinks {
		return
	}
	kept := time.Duration(j.progress.Stop(int64(t.now/time.Second))) * time.Second
	parts := t.spent(job, kept)
	t.spend(parts)
	t.preemption.ResizedGPUHours += parts.lost / time.Hour.Seconds()
}

// goesOn lets such a job train with the members that it has now.
func (t *Tally) goesOn(job int, nodes []int) {
	j, of := &t.jobs[job], &t.scene.Jobs[job]
	if j.phase != running || !of.Shrinks {
		return
	}
	held := int32(0)
	for _, node := range j.holds {
		if node != nowhere {
			held++
		}
	}
	if j.since = t.now; held < j.members {
		t.preemption.Shrunk++
	} else {
		t.preemption.Grown++
	}
	j.members = held
	j.progress.Begin(t.scene.Pace(job, nodes, j.progress.Done), int64(t.now/time.Second))
}

// shrinks takes the members of an elastic job off their nodes that have none any more.
func (t *Tally) shrinks(job int, nodes []int) {
	j := &t.jobs[job]
	if j.phase != running {
		return
	}
	for rank, node := range j.holds {
		if node != nowhere && (rank >= len(nodes) || nodes[rank] < 0) {
			t.holdings.take(int(node), t.demandOf(job, rank), -1)
			j.holds[rank] = nowhere
		}
	}
}

// heldBy counts the accelerators of the members of a job that run.
func (t *Tally) heldBy(job int) int64 {
	var held int64
	for rank, node := range t.jobs[job].holds {
		if demand := t.demandOf(job, rank); node != nowhere && t.scene.Accelerator < len(demand) {
			held += demand[t.scene.Accelerator]
		}
	}
	return held
}

func (t *Tally) demandOf(job, rank int) topology.Capacity {
	gang := &t.scene.Jobs[job].Gang
	return gang.Shapes[gang.Members[rank].Shape].Demand
}
