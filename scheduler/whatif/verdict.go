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
	// Wrong: its request cannot be read, or means nothing on this fleet.
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
	// Members is the number of existing ones, announced ones included; Needed the number that have to start together
	// (late ones on top), Runs the number with nodes.
	Members, Needed, Runs int
	// Accelerators is the number of devices that its members request.
	Accelerators int64
	// Claims says that members without nodes claim devices.
	Claims bool
	// Scheduler is the schedulerName of its pods, "" if it has none.
	Scheduler string
	// Position is its place in the queue, 1 for the first; 0 if it is not in it.
	Position int
	// Forecast is the scheduler's forecast of its start when it began to wait, from its record of such waits; the zero
	// Start if there was none.
	Forecast standing.Start
}

// MemberPlace is the place of one member.
type MemberPlace struct {
	Rank         int
	Member, Node string
	// Late members arrive when the others run; their place is reserved. New ones have no node yet: it is planned.
	Late, New bool
	// Domains are those of the node, outermost first.
	Domains []topology.Domain
}

// Where is the place of a gang, or the one that it is assigned.
type Where struct {
	// Within is the smallest domain that holds all of it.
	Within  topology.Domain
	Members []MemberPlace
}

// Missing is the reason for which a gang is incomplete.
type Missing struct {
	// Needed members have to be there, Exist are.
	Needed, Exist int
	// Indexes are the completion indexes that no pod has, where these alone distinguish members.
	Indexes []int
	// Gates are the scheduling gates of its members, by name, with the number of members that have each.
	Gates []Gate
	// Leaving is the number of members that are being deleted.
	Leaving int
}

// Gate is a scheduling gate and the number of members that it holds back.
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
	// Estimated says that no end is known, or that it has passed: the unit is assumed to run as long again as it has,
	// at least ten minutes.
	Estimated bool
	// Overdue says that the end that was known has passed.
	Overdue bool
	// Accelerators is the number of devices that it holds.
	Accelerators int64
}

// Reservation is a place that the queue leases to an entity.
type Reservation struct {
	For types.NamespacedName
	// Reason is the purpose of the reservation: head for one that waits for units to end, preemption for victims to
	// leave.
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

// Behind explains the wait of a gang that fits but for the places reserved for earlier entities.
type Behind struct {
	// Of are the reservations in the way, in the order of the queue.
	Of []Reservation
	// At is the first instant at which one of them is expected to be used; zero if that is not known.
	At time.Time
	// End is the expected end of the gang; zero if unknown.
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

// Preemption is the cost of a gang's start for others.
type Preemption struct {
	Victims []Victim
	// Lost is the work that is lost with them, in accelerator-seconds.
	Lost int64
	// Cheapest says that no victims lose less.
	Cheapest bool
	// Exceeded are the PodDisruptionBudgets that allow fewer disruptions, as namespace/name.
	Exceeded []string
}

// Verdict is the scheduler's decision about a gang, and its reason.
type Verdict struct {
	Gang  Gang
	State State
	// Where is its place: now, at its start, or after its victims have left; nil if it waits.
	Where *Where
	// Missing is set if it is Incomplete.
	Missing *Missing
	// Problem is the fault of its request.
	Problem string
	// Shortfall is the fleet's deficit; nil if the gang fits but for the queue.
	Shortfall *topology.Shortfall
	// Note follows the shortfall in the scheduler's message: that nodes are about to leave other ComputeDomains; "" for
	// nothing.
	Note string
	// Cause has to change first, "" if it starts.
	Cause contention.Cause
	// Services are the units with accelerators that are not meant to end, most accelerators first, if no end makes room
	// for it. Their End is zero.
	Services []Waited
	// Sweep is set if it waits for its sweep's turn.
	Sweep *contention.SweepTurn
	// Reserved is the place that is reserved for the gang itself, nil for none.
	Reserved *Reservation
	// Behind is set if it fits but for places reserved for others.
	Behind *Behind
	// After are the earlier entities whose reservations have to end before a place can be reserved for this one.
	After []types.NamespacedName
	// Passes are the entities whose reserved places it uses: it ends before they do, leaves when they need it, or they
	// are open.
	Passes []types.NamespacedName
	// Vacated says that it fits when units have left that are evicted for other gangs.
	Vacated bool
	// Preemption is set if the gang Preempts, or Moves: then the gang itself leaves. Else NoVictims says why no unit
	// does.
	Preemption *Preemption
	NoVictims  string
}

// Starts reports whether the gang waits for no end: it runs, or the scheduler starts it in its next cycle.
func (v Verdict) Starts() bool {
	return v.State == Placed || v.State == Fits || v.State == Preempts || v.State == Moves
}
