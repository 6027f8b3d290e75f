package contention

// Policy holds the numbers of the rules. The zero value is not useful: start from DefaultPolicy.
type Policy struct {
	// Discipline is that of entities that name no other.
	Discipline
	// MaxLeases is the largest number of head leases at a time; preemption leases are not counted (rule 12). 0 grants
	// no head lease: each entity that fits starts.
	MaxLeases int
	// MaxGuesses is the number of closed leases at a time that may rest on guessed ends, in order; the others are open.
	// 0 means without limit.
	MaxGuesses int
	// Preemption lets entities evict units of lower priority.
	Preemption bool
	// Terms say when an eviction pays.
	Terms Terms
	// CeilingPart is the part of all accelerators that all leases together may idle over CeilingWindow, as its inverse:
	// 10 is a tenth. 0 means without limit.
	CeilingPart int64
	// CeilingWindow is in seconds.
	CeilingWindow int64
	// MinRemaining is the least remaining run time in seconds that is assumed of a unit whose end is not known.
	MinRemaining int64
	// MaxOverrun is the sum of the chances, in thousandths, that the units which passed a lease outlast its instant.
	MaxOverrun int64
	// Grace is the time in seconds for which a node or an owner may be away before its place is given up.
	Grace int64
	// Patience is the time in seconds for which a start may make no progress.
	Patience int64
	// Unearned is the least number of seconds for which one gang of a namespace retains the places of lost members.
	Unearned int64

	// eager has each end of a unit evaluate all that it may concern, uncounted has no entity refused by a count. Both
	// are for tests.
	eager, uncounted bool
}

// Units of time, in seconds.
const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
	week   = 7 * day
)

// DefaultPolicy returns the numbers that the product ships with.
func DefaultPolicy() Policy {
	const (
		leases     = 8
		tenth      = 10
		overrun    = 100
		remaining  = 10 * minute
		nodesGrace = 5 * minute
		unearned   = 20
	)
	return Policy{
		Discipline: Promise(),
		MaxLeases:  leases, MaxGuesses: 1,
		Preemption:    true,
		Terms:         DefaultTerms(),
		CeilingPart:   tenth,
		CeilingWindow: week,
		MinRemaining:  remaining,
		MaxOverrun:    overrun,
		Grace:         nodesGrace,
		Patience:      minute,
		Unearned:      unearned,
	}
}
