package contention

import (
	"cmp"
	"math"

	"github.com/lockstep-project/lockstep/topology"
)

// ID names an entity, a unit or the owner of a lease. A gang and the unit that it becomes have the same ID.
type ID string

// None is the instant of an event that is not expected to happen.
const None = math.MaxInt64

// Certainty ranks the reliability of an end.
type Certainty uint8

// The certainties of an end, least first.
const (
	// Unknown ends are guessed: the unit is expected to run as long again as it has run so far.
	Unknown Certainty = iota
	// Predicted ends follow from the history of such units: nine in ten end by then.
	Predicted
	// Reported ends are announced by the trainer.
	Reported
	// Certain ends are deadlines that were set before the start and are enforced.
	Certain
	// Never is for services.
	Never
)

// End is the expected end of a unit.
type End struct {
	// At is the instant; it is ignored if the certainty is Unknown or Never.
	At        int64
	Certainty Certainty
}

// firm reports whether leases rest on the end: whether it is known, if only from history.
func (e End) firm() bool {
	return e.Certainty == Predicted || e.Certainty == Reported || e.Certainty == Certain
}

// Unit is a running gang with all its members, or a running single pod.
type Unit struct {
	ID ID
	// Holds are the resources of its members, by node.
	Holds    []topology.Held
	Priority int32
	// Preemptible units may be evicted for an entity of higher priority.
	Preemptible bool
	// Grace is the time in seconds that it needs to leave when it is evicted.
	Grace int64
	// Accelerators is the number that it holds.
	Accelerators int64
	// Of is the gang of a member beyond the fewest of an elastic gang: the member is a unit of its own, and the gang
	// continues without it. "" for any other unit.
	Of ID
	// Stops counts the accelerators of all units of an elastic gang: when one leaves, all start again from their last
	// checkpoint. 0 is Accelerators.
	Stops int64
	// Started is the instant at which its work began, Saved that of its last checkpoint; 0 if there is none.
	Started, Saved int64
	// Resumed is the instant at which an elastic gang last resumed from a checkpoint with other members than before; 0
	// if it never did.
	Resumed int64
	// SavesEvery is the time between two checkpoints in seconds if they are periodic from the start, or Resumed, on,
	// else 0.
	SavesEvery int64
	End        End
	// Leaving says that its eviction has begun: nothing more is lost with it, and it ends soon.
	Leaving bool
	// Sweep is the set of trials to which it belongs.
	Sweep Sweep
	// Budgets are the disruption budgets that cover members of it.
	Budgets []Covered
}

// Covered is the number of members of a unit that a disruption budget covers.
type Covered struct {
	// Budget indexes Snapshot.Budgets.
	Budget  int
	Members int
}

// Expected returns the instant at which the unit is expected to end, None for a service, and whether that instant is
// firm. A unit with no known end, or one that is overdue, is expected to run as long again as it has run, at least the
// given number of seconds: unknown is neither forever nor now.
func (u *Unit) Expected(now, atLeast int64) (at int64, firm bool) {
	switch {
	case u.End.Certainty == Never:
		return None, false
	case u.End.Certainty == Unknown || u.End.At <= now:
		return now + max(now-u.Started, atLeast), false
	}
	return u.End.At, u.End.firm()
}

// Lost returns the work in accelerator-seconds that is lost if the unit is evicted now: since its last checkpoint, or
// its start. A unit that leaves already loses nothing more.
func (u *Unit) Lost(now int64) int64 {
	if u.Leaving {
		return 0
	}
	began := max(u.Started, u.Resumed)
	since := max(began, u.Saved)
	if u.SavesEvery > 0 && now > began {
		since = max(since, now-(now-began)%u.SavesEvery)
	}
	return max(u.Accelerators, u.Stops) * max(0, now-since)
}

// restarts returns the accelerator-seconds that the unit needs to start again if it is evicted now and a start takes so
// many seconds.
func (u *Unit) restarts(seconds int64) int64 {
	if u.Leaving {
		return 0
	}
	return max(u.Accelerators, u.Stops) * seconds
}

// gang returns the ID under which the unit waits, ends and is evicted: that of its gang if it is a member of its own.
func (u *Unit) gang() ID { return cmp.Or(u.Of, u.ID) }
