package gangplacement

import (
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/topology"
)

// place plans all waiting members or, if they do not fit, as many first ranks as do and are needed; late members are
// needed always, or the others would wait for them in vain. If that cannot be,
// it says why: a wrong question (a level that no node carries) waits like one without room, since labels come and go. The
// gang returned is what was placed.
func place(l topology.Ledger, gang topology.Gang, needed int) (topology.Gang, topology.Placement, *refusal) {
	running, late := 0, 0
	for _, m := range gang.Members {
		switch {
		case m.Placed:
			running++
		case m.Late:
			late++
		}
	}
	if running == 0 {
		gang.Min = min(max(needed, 1)+late, len(gang.Members))
	}
	placement, shortfall, err := topology.Place(l, gang)
	if shortfall != nil && running > 0 && max(needed, 1) < len(gang.Members)-running-late {
		fewer := gang
		fewer.Members = onlyNeeded(gang.Members, max(needed, 1))
		if without, none, err := topology.Place(l, fewer); none == nil && err == nil {
			return fewer, without, nil
		}
	}
	switch {
	case err != nil:
		return gang, placement, &refusal{explanation.WrongRequest, err.Error(), ruleRequest}
	case shortfall != nil:
		return gang, placement, &refusal{explanation.NoRoom, shortfall.String(), ruleOf(shortfall)}
	}
	return gang, placement, nil
}

// refusal is why a gang is not placed: for the condition, for people, and for counting.
type refusal struct{ reason, message, rule string }

// tell explains a refusal. What would be without the victims of a preemption is nobody's business.
func (p *GangPlacement) tell(q question, no refusal) {
	if q.fleet == withoutVictims {
		return
	}
	p.explain.Waits(q.group, no.reason, no.message)
	metrics.Shortfalls.WithLabelValues(no.rule).Inc()
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
