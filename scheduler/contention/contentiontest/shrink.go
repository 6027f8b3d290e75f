package contentiontest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// partOf names the unit of a member that an elastic job can do without.
func partOf(j *job, rank int) contention.ID { return contention.ID(fmt.Sprintf("%s/%d", j.Name, rank)) }

// evictAll begins evictions of jobs, and of members of elastic ones whose job stays.
func (p *Player) evictAll(victims []contention.ID) {
	parts := make(map[string][]int)
	for _, id := range victims {
		name, rank, part := strings.Cut(string(id), "/")
		if !part {
			p.evict(p.jobs[name])
			continue
		}
		n, _ := strconv.Atoi(rank) // we have printed it
		parts[name] = append(parts[name], n)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if j := p.jobs[name]; j.runs && j.evicted == contention.None {
			p.part(j, parts[name])
		}
	}
}

// part begins to evict members of an elastic job.
func (p *Player) part(j *job, ranks []int) {
	if j.parting == nil {
		j.parting = make(map[int]int64)
	}
	for _, rank := range ranks {
		j.parting[rank] = p.now + j.Grace
	}
	if j.Grace == 0 {
		p.shrink(j)
		return
	}
	p.unit(j)
}

// firstParting returns when the first member of an elastic job leaves that was evicted alone; contention.None if none
// leaves.
func (j *job) firstParting() int64 {
	first := int64(contention.None)
	for _, at := range j.parting {
		first = min(first, at)
	}
	return first
}

// shrink takes the members off their nodes that have had their time. They wait to return.
func (p *Player) shrink(j *job) {
	var nodes []int
	var left []*contention.Unit
	for _, rank := range slices.Sorted(maps.Keys(j.parting)) {
		if j.parting[rank] <= p.now {
			p.take(j.nodes[rank], j.demand(), -1)
			nodes = append(nodes, j.nodes[rank])
			left = append(left, p.running.Remove(partOf(j, rank)))
			j.nodes[rank] = -1
			delete(j.parting, rank)
		}
	}
	j.resumed = p.now
	p.logf("%s shrinks to %d, without %s", j.Name, j.alive(), ranges(nodes))
	if j.alive() < j.least() {
		p.fail("%s is left with %d of the %d members that it needs", j.Name, j.alive(), j.least())
	}
	p.unit(j)
	for _, u := range left {
		p.machine.Ended(u, p.now)
	}
	if !j.waits {
		p.queue(j)
	}
}
