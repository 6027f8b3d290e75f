package decision

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Ask is a gang that waits.
type Ask struct {
	Gang topology.Gang
	// Needed is how many of the members that wait have to start together; late ones come on top of them.
	Needed int
	// End is when it would end that is asked about, in seconds since 1970; topology.EndUnknown if nobody knows.
	End int64
}

// Answer is where a gang goes, or why it waits.
type Answer struct {
	// Gang is what was placed: not all members that are asked about have to be.
	Gang      topology.Gang
	Placement topology.Placement
	// Refusal is nil if it was placed.
	Refusal *Refusal
}

// Refusal is why a gang waits: exactly one of the two is set.
type Refusal struct {
	// Wrong is what is wrong with the question. It waits like one without room, since levels come and go with labels.
	Wrong error
	Short *topology.Shortfall
}

// String says it in words.
func (r Refusal) String() string {
	if r.Wrong != nil {
		return r.Wrong.Error()
	}
	return r.Short.String()
}

// Place places all waiting members or, if they do not fit, as many first ranks as do and are needed; late members are
// needed always, or the others would wait for them in vain.
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
	return answer(gang, placement, short, err)
}

func answer(gang topology.Gang, placement topology.Placement, short *topology.Shortfall, err error) Answer {
	out := Answer{Gang: gang, Placement: placement}
	if short != nil || err != nil {
		out.Refusal = &Refusal{Wrong: err, Short: short}
	}
	return out
}

// Of is the same answer about the gang as it asks alone, without what stands for another one in its demands.
func (a Answer) Of(alone Ask) Answer {
	a.Gang = alone.Least()
	return a
}

// Least is the gang with the fewest members that will do.
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

// onlyNeeded keeps the members that run, those that are late and the first n of the others.
func onlyNeeded(members []topology.Member, n int) []topology.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m topology.Member) bool {
		if m.Placed || m.Late {
			return false
		}
		n--
		return n < 0
	})
}
