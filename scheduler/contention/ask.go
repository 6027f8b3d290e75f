package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Ask is a question: a gang, and the number of its members that have to start together.
type Ask struct {
	Gang topology.Gang
	// Needed counts the waiting members that have to start together. Late members are not counted, and always placed.
	Needed int
	// End is the instant in seconds at which the entity would end if it started now; topology.EndUnknown if that is not
	// known.
	End int64
}

// Answer holds the placement of a gang, or the reason why it does not fit.
type Answer struct {
	// Gang is the part that was placed: not all members have to be.
	Gang      topology.Gang
	Placement topology.Placement
	// Refusal is nil if the gang was placed.
	Refusal *Refusal
}

// Refusal explains why an entity does not fit. Exactly one field is set.
type Refusal struct {
	// Wrong is the fault of the question. Such an entity waits like one without room, since levels appear and disappear
	// with node labels.
	Wrong error
	Short *topology.Shortfall
}

// String returns the reason in words.
func (r Refusal) String() string {
	if r.Wrong != nil {
		return r.Wrong.Error()
	}
	return r.Short.String()
}

// Place places all waiting members or, if they do not fit, as many first ranks as fit and are needed. Late members are
// always placed: the others would wait for them without result.
func Place(l topology.Ledger, ask Ask) Answer {
	running, late := 0, 0
	for _, m := range ask.Gang.Members {
		switch {
		case m.Placed:
			running++
		case m.Late:
			late++
		}
	}
	gang := ask.Gang
	if running == 0 {
		gang = ask.Least()
	}
	placement, short, err := topology.Place(l, gang)
	if short != nil && running > 0 && max(ask.Needed, 1) < len(gang.Members)-running-late {
		fewer := gang
		fewer.Members = onlyNeeded(gang.Members, max(ask.Needed, 1))
		if without, none, err := topology.Place(l, fewer); none == nil && err == nil {
			return Answer{Gang: fewer, Placement: without}
		}
	}
	return newAnswer(gang, placement, short, err)
}

// newAnswer converts an answer of package topology about a gang.
func newAnswer(gang topology.Gang, placement topology.Placement, short *topology.Shortfall, err error) Answer {
	out := Answer{Gang: gang, Placement: placement}
	if short != nil || err != nil {
		out.Refusal = &Refusal{Wrong: err, Short: short}
	}
	return out
}

// Of returns the answer about the gang as it asks alone, without the demands that stand for another gang.
func (a Answer) Of(alone Ask) Answer {
	a.Gang = alone.Least()
	return a
}

// Least returns the gang with the fewest members that may start.
func (a Ask) Least() topology.Gang {
	late := 0
	for _, m := range a.Gang.Members {
		if m.Late {
			late++
		}
	}
	gang := a.Gang
	gang.Min = min(max(a.Needed, 1)+late, len(gang.Members))
	return gang
}

// Fewest returns the gang with the fewest members that may start, those that run included. Without any that run it is
// Least: of a gang with running members, Min would count these, and be reached without a place for those that wait.
func (a Ask) Fewest() topology.Gang {
	if !slices.ContainsFunc(a.Gang.Members, func(m topology.Member) bool { return m.Placed }) {
		return a.Least()
	}
	gang := a.Gang
	gang.Members, gang.Min = onlyNeeded(gang.Members, max(a.Needed, 1)), 0
	return gang
}

// onlyNeeded retains the running members, the late ones and the first n of the others.
func onlyNeeded(members []topology.Member, n int) []topology.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m topology.Member) bool {
		if m.Placed || m.Late {
			return false
		}
		n--
		return n < 0
	})
}
