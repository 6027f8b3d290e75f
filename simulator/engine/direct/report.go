package direct

import (
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// reported holds what was reported of leases.
type reported struct {
	// leased is set if a lease changed at this instant.
	leased bool
	// kept holds the jobs whose lease was reported.
	kept map[int]bool
}

// told is a lease as reported: no nodes for none.
type told struct {
	nodes []int
	at    int64
}

// report reports the leases that changed at this instant, and the jobs that began to wait.
func (p *player) report() {
	if p.reported.leased {
		p.reportKept()
		p.reported.leased = false
	}
	slices.Sort(p.backlog.came)
	for _, rank := range slices.Compact(p.backlog.came) {
		if i := p.backlog.order[rank]; p.jobs[i].waits {
			p.emit(Event{At: p.now, Kind: Refused, Job: i, Running: none, Name: p.scene.Jobs[i].Name})
			p.foresee(i)
		}
	}
	p.backlog.came = p.backlog.came[:0]
}

// reportKept reports the closed leases that are new or changed since they were reported last.
func (p *player) reportKept() {
	leases := p.machine.Leases()
	owned := make(map[int]bool, len(leases))
	for _, l := range leases {
		owned[p.byID[l.Owner]] = true
		p.keep(l)
	}
	for i := range p.reported.kept {
		if !owned[i] {
			p.jobs[i].told = told{}
			delete(p.reported.kept, i)
		}
	}
}

// keep reports a closed lease that is new, or whose place or firm instant changed.
func (p *player) keep(l *contention.Lease) {
	i := p.byID[l.Owner]
	j, at := &p.jobs[i], int64(Forever)
	if l.Firm {
		at = l.Instant
	}
	switch {
	case l.Open || l.Reason != contention.Head:
		j.told = told{}
		return
	case j.told.at == at && slices.Equal(j.told.nodes, l.Nodes):
		return
	}
	j.told = told{l.Nodes, at}
	p.reported.kept[i] = true
	p.tally.keep(i, at)
	place := topology.Placement{Gang: p.scene.Jobs[i].Name, Within: l.Within}
	for _, h := range l.Holds {
		place.Nodes = append(place.Nodes, h.Node)
	}
	p.emit(Event{
		At: p.now, Kind: Leased, Job: i, Running: none, Name: p.scene.Jobs[i].Name, Placement: place, Reserved: at,
	})
}
