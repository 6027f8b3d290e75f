package contentiontest

import (
	"maps"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// MoveKind names the event that a Move records.
type MoveKind string

// The kinds of moves.
const (
	// Starts is a start of a job, or of waiting members of a job that runs.
	Starts MoveKind = "starts"
	Ends   MoveKind = "ends"
	// Leaves is the end of a job that was evicted or lost a node, and that waits again.
	Leaves MoveKind = "leaves"
	// Evicts is the begin of the eviction of a job that has a grace; it is followed by Leaves, or by Ends if the job
	// ends before.
	Evicts MoveKind = "evicts"
	// Leases is a closed lease of a waiting job that is new, or whose nodes or firm instant changed since the last
	// round.
	Leases MoveKind = "leases"
	// Opens is the opening of such a lease, or its end if the job's turn passed to another trial of its sweep.
	Opens MoveKind = "opens"
)

// Move records that a driver started a job, ended one, or granted a lease. The moves of two drivers of one scene can be
// compared.
type Move struct {
	At   int64
	Kind MoveKind
	Job  string
	// Nodes are those of the members that start, in rank order, or the leased ones, in ascending order.
	Nodes []int
	// Instant is that of a lease; contention.None if it rests on guesses.
	Instant int64
}

// leased is a closed lease as it was noted last.
type leased struct {
	nodes   []int
	instant int64
}

// note notes a move.
func (p *Player) note(kind MoveKind, job string, nodes []int) {
	p.Moves = append(p.Moves, Move{At: p.now, Kind: kind, Job: job, Nodes: nodes, Instant: contention.None})
}

// noteLeases notes the closed leases of waiting jobs that changed since it was called last.
func (p *Player) noteLeases() {
	closed := make(map[string]leased)
	for _, l := range p.machine.Leases() {
		owner, is := string(l.Owner), leased{slices.Clone(l.Nodes), contention.None}
		if l.Open || l.Reason != contention.Head {
			if _, ok := p.leased[owner]; ok && l.Open {
				p.note(Opens, owner, nil)
			}
			continue
		}
		if l.Firm {
			is.instant = l.Instant
		}
		closed[owner] = is
		if was, ok := p.leased[owner]; ok && was.instant == is.instant && slices.Equal(was.nodes, is.nodes) {
			continue
		}
		p.note(Leases, owner, is.nodes)
		p.Moves[len(p.Moves)-1].Instant = is.instant
	}
	for _, owner := range slices.Sorted(maps.Keys(p.leased)) {
		id := contention.ID(owner)
		if reason, _ := p.machine.Reason(id); reason.Cause == contention.SweepsTurn && p.machine.Lease(id) == nil {
			p.note(Opens, owner, nil)
		}
	}
	p.leased = closed
}
