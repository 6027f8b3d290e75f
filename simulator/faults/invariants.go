package faults

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Invariant holds under all faults.
type Invariant string

// The invariants.
const (
	// Whole: no gang is partly on nodes for longer than the patience. Started: least of all one that has never been
	// whole.
	Whole   Invariant = "no gang partial"
	Started Invariant = "no start torn"
	// Once: no device is given twice.
	Once Invariant = "no device twice"
	// Together: a gang that has to be in one domain is.
	Together Invariant = "no gang apart"
	// Owned: no lease outlives its owner.
	Owned Invariant = "no lease without owner"
	// Counted: no job is lost, fails without reason, or is reported finished twice.
	Counted Invariant = "no job lost"
	// Served: no gang waits while there is room.
	Served Invariant = "no gang waits for nothing"
	// Clean: deletion leaves nothing behind.
	Clean Invariant = "nothing left"
	// Single: a scheduler that does not lead changes nothing.
	Single Invariant = "no second leader"
)

const (
	// patience bounds Whole: the scheduler repairs for five minutes, and evicts after that. unmade bounds it for a gang
	// whose Job makes no other rank: the scheduler waits for the longest backoff before.
	patience = 7 * time.Minute
	unmade   = 17 * time.Minute
	// startPatience bounds Started: a minute without progress, and the time of an eviction.
	startPatience = 2 * time.Minute
	// ownerless bounds Owned, idle Served.
	ownerless = 3 * time.Minute
	idle      = 3 * time.Minute
)

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant Invariant
	At        time.Duration
	// What describes the violation.
	What string
}

// String is a line.
func (v Violation) String() string { return fmt.Sprintf("%v %s: %s", v.At, v.Invariant, v.What) }

// invariants checks the world.
type invariants struct {
	world  *world
	broken []Violation
	// version is the server's at the last check.
	version int64
	said    map[string]bool
	// since is since when something is as it should not stay.
	since map[string]time.Time
	// changes is the number of changes of leases when they were noted last.
	changes int
	// whole are the groups whose gangs were.
	whole map[types.UID]bool
}

func newInvariants(w *world) *invariants {
	return &invariants{
		world: w,
		said:  make(map[string]bool),
		whole: make(map[types.UID]bool),
		since: make(map[string]time.Time),
	}
}

// breaks notes a violation, once for each thing that it is about.
func (v *invariants) breaks(of Invariant, what, format string, args ...any) {
	key := string(of) + "/" + what
	if v.said[key] {
		return
	}
	v.said[key] = true
	violation := Violation{of, v.world.since(), what + ": " + fmt.Sprintf(format, args...)}
	v.broken = append(v.broken, violation)
	v.world.note("BROKEN %s", violation)
}

// is reports whether something is so for longer than a bound, counted from the last trouble.
func (v *invariants) is(so bool, key string, bound time.Duration) bool { //nolint:revive // what is so is not how
	if so {
		return v.lasts(key, bound)
	}
	delete(v.since, key)
	return false
}

// lasts reports whether a condition has held for longer than a bound.
func (v *invariants) lasts(key string, bound time.Duration) bool {
	since, known := v.since[key]
	if !known {
		since = v.world.now()
		v.since[key] = since
	}
	if v.world.inTrouble() {
		v.since[key] = v.world.now()
		return false
	}
	return v.world.now().Sub(since) > bound
}

// inTrouble reports whether a fault hinders Lockstep, or no scheduler decides.
func (w *world) inTrouble() bool { return w.hindered > 0 || w.leader == nil }
