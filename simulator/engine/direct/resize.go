package direct

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// parting is a rank of an elastic job that leaves alone, and when.
type parting struct {
	rank int
	at   int64
}

// shrinks reports whether a job continues without members, and takes them back later. Other schedulers place all
// members.
func (p *player) shrinks(i int) bool { return p.scene.Jobs[i].Shrinks && p.elastic(i) }

// partID is that of the unit of a member beyond the fewest.
func (p *player) partID(i, rank int) contention.ID {
	return p.id(i) + "/" + contention.ID(strconv.Itoa(rank))
}

// preemptAll evicts jobs, and members of elastic jobs that stay.
func (p *player) preemptAll(victims []contention.ID) {
	parts := make(map[int][]int)
	var jobs []int
	for _, id := range victims {
		if i, ok := p.byID[id]; ok {
			p.preempt(i)
			continue
		}
		cut := strings.LastIndexByte(string(id), '/')
		rank, _ := strconv.Atoi(string(id[cut+1:])) // as partID has it
		i := p.byID[id[:cut]]
		if _, known := parts[i]; !known {
			jobs = append(jobs, i)
		}
		parts[i] = append(parts[i], rank)
	}
	for _, i := range jobs {
		if r := p.jobs[i].run; r != nil && r.leaves == Forever {
			p.part(r, parts[i])
		}
	}
}

// part has members of an elastic job leave when their grace is over.
func (p *player) part(r *run, ranks []int) {
	grace := p.scene.Jobs[r.job].Grace
	if grace == 0 {
		p.tally.lost += r.unit.Lost(p.now)
		p.shrink(r, func(rank int) bool { return slices.Contains(ranks, rank) })
		return
	}
	for _, rank := range ranks {
		r.parting = append(r.parting, parting{rank, p.later(grace)})
	}
	p.runs.parting = append(p.runs.parting, r)
	p.count(r)
}

// firstParting returns the instant at which the next member leaves alone; Forever if none does.
func (p *player) firstParting() int64 {
	first := int64(Forever)
	for _, r := range p.runs.parting {
		for _, of := range r.parting {
			first = min(first, of.at)
		}
	}
	return first
}

// partAll lets the members leave whose grace is over.
func (p *player) partAll() {
	if p.firstParting() > p.now {
		return
	}
	for _, r := range slices.Clone(p.runs.parting) {
		leaves := func(rank int) bool {
			return slices.ContainsFunc(r.parting, func(of parting) bool { return of.rank == rank && of.at <= p.now })
		}
		if slices.ContainsFunc(r.parting, func(of parting) bool { return of.at <= p.now }) {
			p.tally.lost += r.unit.Lost(p.now)
			p.shrink(r, leaves)
		}
	}
}

// survives reports whether an elastic job continues after losing these nodes: its first rank, at which the others meet,
// stays, and enough others do.
func (p *player) survives(r *run, nodes []int) bool {
	if r.job == none || r.leaves != Forever || !p.shrinks(r.job) || slices.Contains(nodes, r.nodes[0]) {
		return false
	}
	stay := 0
	for _, node := range r.nodes {
		if node >= 0 && !slices.Contains(nodes, node) {
			stay++
		}
	}
	return stay >= p.scene.Jobs[r.job].Min
}

// shrink removes members of an elastic job. The others resume from the last checkpoint.
func (p *player) shrink(r *run, leaves func(rank int) bool) {
	var lost []int
	p.save(r)
	parts := p.removeUnits(r)
	next := slices.Clone(r.nodes)
	for rank, node := range r.nodes {
		if node >= 0 && leaves(rank) {
			lost = append(lost, node)
			next[rank] = lostNode
			p.take(p.heldBy(r, rank), 1)
		}
	}
	left := slices.DeleteFunc(parts, func(u *contention.Unit) bool { return u.Of == "" || !p.lostPart(r, u, leaves) })
	r.parting = slices.DeleteFunc(r.parting, func(of parting) bool { return leaves(of.rank) })
	if len(r.parting) == 0 {
		p.runs.parting = slices.DeleteFunc(p.runs.parting, func(other *run) bool { return other == r })
	}
	r.nodes = next
	p.goOn(r)
	p.emit(Event{
		At: p.now, Kind: Shrunk, Job: r.job, Running: none, Name: p.scene.Jobs[r.job].Name,
		Placement: topology.Placement{Gang: p.scene.Jobs[r.job].Name, Nodes: r.nodes},
	})
	for _, u := range left {
		p.machine.Ended(u, p.now)
	}
	if len(left) == 0 {
		p.machine.Freed(lost)
	}
	p.waitToGrow(r.job)
}

// lostPart reports whether the member of a unit leaves.
func (p *player) lostPart(r *run, u *contention.Unit, leaves func(rank int) bool) bool {
	rank, _ := strconv.Atoi(strings.TrimPrefix(string(u.ID), string(p.id(r.job))+"/"))
	return leaves(rank)
}

// waitToGrow puts the members of an elastic job that have no node into the queue, as they are now.
func (p *player) waitToGrow(i int) {
	j := &p.jobs[i]
	if !j.surplus {
		j.surplus = true
		p.backlog.queued++
	}
	p.machine.Add(p.surplus(i))
}

// grow lets members that waited join an elastic job. All resume from the last checkpoint.
func (p *player) grow(r *run, a contention.Placed) {
	i, j := r.job, &p.jobs[r.job]
	p.save(r)
	p.removeUnits(r)
	r.nodes = slices.Clone(r.nodes)
	var fresh []int
	for k, node := range a.Placement.Nodes {
		if !a.Gang.Members[k].Placed {
			rank := slices.Index(r.nodes, lostNode) // members that wait start in their order
			r.nodes[rank] = node
			fresh = append(fresh, node)
			p.take(p.heldBy(r, rank), -1)
		}
	}
	p.goOn(r)
	p.backlog.queued--
	j.surplus = false
	p.act(p.machine.Started(a.ID, fresh, p.now))
	p.emit(Event{
		At: p.now, Kind: Joined, Job: i, Running: none, Name: p.scene.Jobs[i].Name,
		Placement: topology.Placement{Gang: p.scene.Jobs[i].Name, Nodes: r.nodes},
	})
	if slices.Contains(r.nodes, lostNode) {
		p.waitToGrow(i)
	}
}

// goOn resumes an elastic job from its last checkpoint with its present members.
func (p *player) goOn(r *run) {
	r.holds = nil
	for rank, node := range r.nodes {
		if node >= 0 {
			r.holds = append(r.holds, p.heldBy(r, rank))
		}
	}
	p.runs.ends.remove(r)
	r.start = p.now
	r.pace = p.pace(r.job, r.nodes)
	r.ends, r.past = p.later(p.takes(r.job, r.pace)), p.past
	p.runs.ends.add(r)
	p.count(r)
}

// running returns the nodes of the members that run.
func running(nodes []int) []int {
	return slices.DeleteFunc(slices.Clone(nodes), func(node int) bool { return node < 0 })
}

// heldBy returns the demand of a member that runs, on its node.
func (p *player) heldBy(r *run, rank int) topology.Held {
	gang := &p.scene.Jobs[r.job].Gang
	return topology.Held{Node: r.nodes[rank], Demand: gang.Shapes[gang.Members[rank].Shape].Demand}
}

// remains returns the seconds that a run of an elastic job still takes on the nodes that it has, by its owner's
// estimate, as its trainer reports it.
func (p *player) remains(r *run) int64 {
	asked := &p.scene.Jobs[r.job]
	work := asked.Promises
	if asked.Runs != Forever {
		work -= asked.Runs - p.jobs[r.job].left
	}
	return stretched(max(work, 1), len(asked.Gang.Members), len(running(r.nodes)))
}

// work returns the known run time of a job with all members, 0 for an unknown one.
func (p *player) work(i int) int64 {
	if p.options.Foresight == Perfect && p.jobs[i].left != Forever {
		return p.jobs[i].left
	}
	return cmp.Or(p.scene.Jobs[i].Promises, p.jobs[i].predicted)
}

// stretched returns the run time with some members of work that takes so long with all.
func stretched(work int64, all, some int) int64 {
	if work >= math.MaxInt64/int64(all) {
		return work
	}
	return (work*int64(all) + int64(some) - 1) / int64(some)
}
