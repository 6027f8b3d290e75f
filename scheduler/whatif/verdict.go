package whatif

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/topology"
)

// State is the answer in one word.
type State string

// The states of a gang.
const (
	// Placed: all members that exist have nodes.
	Placed State = "placed"
	// Fits: there is room, and nobody before it in the queue needs it. The scheduler starts it with its next look.
	Fits State = "fits"
	// Preempts: there will be room when those have left that lose least.
	Preempts State = "preempts"
	// Moves: members that it lost have no room near the others, and all of it starts again elsewhere.
	Moves State = "moves"
	// Waits: there is no room, or it is kept for somebody.
	Waits State = "waits"
	// Incomplete: the scheduler does not look at it, because members are missing or gated.
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
}

// Seat is the place of one member.
type Seat struct {
	Rank         int
	Member, Node string
	// Late members come when the others run; their place is held. New ones have no node yet: it is planned.
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
	// Indexes are the completion indexes that nobody has, where members are told apart by these alone.
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

// Waited is something that runs, and whose end makes room.
type Waited struct {
	// Name is namespace/name of a gang; of a single pod with a slash after it.
	Name string
	// End is when it is expected to end; zero if nobody knows.
	End time.Time
	// Accelerators is how many devices it holds.
	Accelerators int64
}

// Kept is the place that is kept for the first gang of the queue.
type Kept struct {
	For types.NamespacedName
	// At is when the last of those in it is expected to end; zero if nobody knows.
	At    time.Time
	Where Where
	// Waits are the units whose ends make the room, the last one first.
	Waits []Waited
}

// Behind is why a gang for which there is room waits: the place kept for the first of the queue would be touched.
type Behind struct {
	// Own is where the gang would go otherwise, Shared the nodes of that which are kept.
	Own    Where
	Shared []string
	// End is when the gang would end, as far as it is known; zero if nobody knows.
	End time.Time
}

// Victim is who leaves for a gang.
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
	// Shortfall is what the fleet lacks; nil if it would fit but for the queue.
	Shortfall *topology.Shortfall
	// Note is what else the scheduler says after the shortfall: that nodes are about to leave other ComputeDomains; "" for nothing.
	Note string
	// Kept is the place that is kept: for the gang itself, or for the one it is behind.
	Kept   *Kept
	Behind *Behind
	// Preemption is set if the gang Preempts, or Moves: then the gang itself is who leaves. Else Spared says why nobody does.
	Preemption *Preemption
	Spared     string
}

// Starts reports whether the gang needs nobody's end: it runs, or the scheduler starts it with its next look.
func (v Verdict) Starts() bool {
	return v.State == Placed || v.State == Fits || v.State == Preempts || v.State == Moves
}
