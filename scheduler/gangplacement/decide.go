package gangplacement

import (
	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
)

// refusal is why a gang is not placed: for the condition, for people, and for counting.
type refusal struct{ reason, message, rule string }

func refusalOf(no decision.Refusal) refusal {
	if no.Wrong != nil {
		return refusal{explanation.WrongRequest, no.String(), ruleRequest}
	}
	return refusal{explanation.NoRoom, no.String(), ruleOf(no.Short)}
}

// tell explains a refusal. What would be without the victims of a preemption is nobody's business.
func (p *GangPlacement) tell(q question, no refusal) {
	if q.fleet == withoutVictims {
		return
	}
	p.explain.Waits(q.group, no.reason, no.message)
	metrics.Shortfalls.WithLabelValues(no.rule).Inc()
}
