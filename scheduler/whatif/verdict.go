package whatif

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// State is the answer in one word.
type State string

// The states of a gang.
const (
	// Placed: all members that exist have nodes.
	Placed State = "placed"
	// Fits: there is room beside the places of earlier entities. The scheduler starts it in its next cycle.
	Fits State = "fits"
	// Preempts: there will be room when its victims have left.
	Preempts State = "preempts"
	// Moves: members that it lost have no room near the others, and all of it starts again elsewhere.
	Moves State = "moves"
	// Waits: there is no room, or it is reserved for earlier entities.
	Waits State = "waits"
	// Incomplete: the scheduler does not evaluate it, because members are missing or gated.
	Incomplete State = "incomplete"
	// Wrong: what it asks for cannot be read, or means nothing on this fleet.
	Wrong State = "wrong"
	// Foreign: another scheduler decides.
	Foreign State = "foreign"
)

// Gang is a gang in the queue.
type Gang struct {
	Name     types.NamespacedName
	Priority int32
	// Since is from when on it waits.
	Since time.Time
	// Members is how many exist, those to come that are announced included; Needed how many have to start together (late ones on
	// top), Runs how many have nodes.
	Members, Needed, Runs int
	// Accelerators is how many devices its members ask for.
	Accelerators int64
	// Claims says that members without nodes claim devices.
	Claims bool
	// Scheduler is the schedulerName of its pods, "" if it has none.
	Scheduler string
	// Position is its place in the queue, 1 for the first; 0 if it is not in it.
	Position int
	// Told is what the scheduler said of its start when it began to wait, by what it had learned of such waits; the zero Start if it said nothing.
	Told standing.Start
}

// Seat is the place of one member.
type Seat struct {
	Rank         int
	Member, Node string
	// Late members arrive when the others run; their place is reserved. New ones have no node yet: it is planned.
	Late, New bool
	// Domains are those of the node, outermost first.
	Domains []topology.Domain
}

// Where is where a gang is, or goes.
type Where struct {
	// Within is the smallest domain that holds all of it.
	Within topology.Domain
	Seats  []Seat
}

// Missing is why a gang is incomplete.
type Missing struct {
	// Needed members have to be there, Exist are.
	Needed, Exist int
	// Indexes are the completion indexes that no pod has, where members are told apart by these alone.
	Indexes []int
	// Gates are the scheduling gates of its members, by name, and how many have each.
	Gates []Gate
	// Leaving is how many members are being deleted.
	Leaving int
}

// Gate is a scheduling gate and how many members it holds back.
type Gate struct {
	Name string
	Pods int
}

// Waited is a unit that runs, and whose end makes room.
type Waited struct {
	// Name is namespace/name of a gang; of a single pod with a slash after it.
	Name string
	// End is the instant at which it is expected to end.
	End time.Time
	// Estimated says that no end is known, or that it has passed: the unit is assumed to run as long again as it has, at least ten minutes.
	Estimated bool
	// Overdue says that the end that was known has passed.
	Overdue bool
	// Accelerators is how many devices it holds.
	Accelerators int64
}

// Reservation is a place that the queue leases to an entity.
type Reservation struct {
	For types.NamespacedName
	// Reason is why the place is reserved: head for one that waits for units to end, preemption for victims to leave.
	Reason contention.Reason
	// At is the instant at which the place is expected to be free; zero if that is not known.
	At time.Time
	// Estimated says that the instant rests on the estimated end of a unit.
	Estimated bool
	// Open says that others may use the place until then: too many accelerators would idle.
	Open  bool
	Where Where
	// Waits are the units whose ends make the room, the last one first.
	Waits []Waited
}

// Behind is why a gang waits that fits but for the places reserved for earlier entities.
type Behind struct {
	// Of are the reservations in the way, in the order of the queue.
	Of []Reservation
	// At is the first instant at which one of them is expected to be used; zero if that is not known.
	At time.Time
	// End is when the gang would end, as far as it is known; zero if it is not.
	End time.Time
}

// Victim is a unit that leaves for a gang.
type Victim struct {
	Name         string
	Priority     int32
	Pods         int
	Accelerators int64
	// Lost is the work that is lost, in accelerator-seconds.
	Lost int64
	// Leaving victims are on their way out already.
	Leaving bool
}

// Preemption is what a gang's start costs others.
type Preemption struct {
	Victims []Victim
	// Lost is the work that is lost with them, in accelerator-seconds.
	Lost int64
	// Cheapest says that no victims lose less.
	Cheapest bool
	// Exceeded are the PodDisruptionBudgets that allow fewer disruptions, as namespace/name.
	Exceeded []string
}

// Verdict is what the scheduler would decide about a gang, and why.
type Verdict struct {
	Gang  Gang
	State State
	// Where it is, goes, or goes when its victims have left; nil if it waits.
	Where *Where
	// Missing is set if it is Incomplete.
	Missing *Missing
	// Problem is what is wrong with what it asks for.
	Problem string
	// Shortfall is what the fleet lacks; nil if it fits but for the queue.
	Shortfall *topology.Shortfall
	// Note is what else the scheduler says after the shortfall: that nodes are about to leave other ComputeDomains; "" for nothing.
	Note string
	// Cause is what has to change first, "" if it starts.
	Cause contention.Cause
	// Services are the units with accelerators that are not meant to end, most accelerators first, if no end makes room for it. Their End is zero.
	Services []Waited
	// Sweep is set if it waits for its sweep's turn.
	Sweep *contention.SweepTurn
	// Reserved is the place that is reserved for the gang itself, nil for none.
	Reserved *Reservation
	// Behind is set if it fits but for places reserved for others.
	Behind *Behind
	// After are the earlier entities whose reservations have to end before a place can be reserved for this one.
	After []types.NamespacedName
	// Passes are the entities whose reserved places it uses: it ends before they do, leaves when they need it, or they are open.
	Passes []types.NamespacedName
	// Vacated says that it fits when units have left that are evicted for other gangs.
	Vacated bool
	// Preemption is set if the gang Preempts, or Moves: then the gang itself leaves. Else NoVictims says why no unit does.
	Preemption *Preemption
	NoVictims  string
}

// Starts reports whether the gang waits for no end: it runs, or the scheduler starts it in its next cycle.
func (v Verdict) Starts() bool {
	return v.State == Placed || v.State == Fits || v.State == Preempts || v.State == Moves
}
