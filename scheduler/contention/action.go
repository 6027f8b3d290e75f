package contention

import "github.com/lockstep-project/lockstep/topology"

// Action instructs the driver. It is a Placed, Leased, Released, Preempted, Evicted, Waits or Rechecks.
type Action interface{ action() }

// Placed says that the entity starts at the placement. It stays in the queue until the driver reports Started.
type Placed struct {
	ID        ID
	Gang      topology.Gang
	Placement topology.Placement
	// Passed are the leases that the entity uses by basic rule 3, or that moved aside for it.
	Passed []ID
}

// Leased says that a lease is new, or that its place, its instant or its state changed.
type Leased struct{ Lease *Lease }

// Released reports that a lease has ended.
type Released struct {
	Lease *Lease
	// Why is one of the Why… constants, or the reason given to Revoke.
	Why string
}

// Why a lease is released.
const (
	WhyStarted   = "started"
	WhyPreempts  = "preempts"
	WhyNotReady  = "owner not ready"
	WhyWrong     = "wrong question"
	WhyNoEnd     = "no end makes room"
	WhyExpired   = "expired"
	WhyReplaced  = "replaced"
	WhyDisplaced = "an earlier entity has a lease"
	WhyVictims   = "the victims do not make room"
	WhySweep     = "its sweep's turn is another trial's"
)

// Preempted asks the driver to evict units. The entity has a lease on the place that they free.
type Preempted struct {
	ID      ID
	Victims []ID
	// Cost is the work that is lost in accelerator-seconds.
	Cost int64
	// Optimal says that no victims lose less.
	Optimal bool
	// Balance compares the gain with the loss. It is zero if the entity has no price.
	Balance   Balance
	Placement topology.Placement
}

// Evicted asks the driver to evict a gang whose start makes no progress, with all its members.
type Evicted struct{ ID ID }

// Waits says that the entity waits, and why.
type Waits struct {
	ID     ID
	Reason Wait
}

// Rechecks asks the driver for another round at an instant, if nothing happens before.
type Rechecks struct{ At int64 }

func (Placed) action()    {}
func (Leased) action()    {}
func (Released) action()  {}
func (Preempted) action() {}
func (Evicted) action()   {}
func (Waits) action()     {}
func (Rechecks) action()  {}

// Cause is the first thing that has to change before an entity starts.
type Cause string

// The causes of waiting.
const (
	// WrongQuestion: the question cannot be asked of this fleet.
	WrongQuestion Cause = "wrong question"
	// NoRoom: there is no room, and the entity has no lease.
	NoRoom Cause = "no room"
	// NoEnd: there is no room, and no end that is expected makes any: services hold it, or the fleet is too small.
	NoEnd Cause = "no end makes room"
	// OwnLease: the entity has a lease, and waits for its instant.
	OwnLease Cause = "own lease"
	// Victims: its victims have to leave.
	Victims Cause = "victims leave"
	// Costly: it runs and would fit, and its gang would lose more work by starting again than more members win.
	Costly Cause = "growing costs more than it wins"
	// OtherLease: it would fit but for leases of earlier entities.
	OtherLease Cause = "lease of an earlier entity"
	// SweepsTurn: as many gangs of its sweep run, or have their turn before it, as may run at a time.
	SweepsTurn Cause = "sweep's turn"
)

// Wait is the reason for which an entity waits.
type Wait struct {
	Cause Cause
	// Refusal is the cause of the lack of room; nil if there is room but for leases.
	Refusal *Refusal
	// Of are the owners of the leases that are in the way, or the victims that have to leave.
	Of []ID
	// Together is the level that keeps the gang together, which asks for no topology (rule 15); "" for none.
	Together string
	// Sweep is the state of the entity's sweep; nil unless the cause is SweepsTurn.
	Sweep *SweepTurn
	// Unpaid is the balance of an eviction, or of growing, that does not pay; nil if there is none.
	Unpaid *Balance
	// At is the instant at which that is expected to end; None if it is not known.
	At int64
}

// Note returns the part of the reason that Refusal omits, as a clause that follows it; "" for nothing.
func (w Wait) Note() string {
	if w.Together == "" {
		return ""
	}
	return "; it asks for no topology, and waits for room in one " + w.Together + " since gangs run faster together"
}
