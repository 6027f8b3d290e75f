package gangplacement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// refusal is why a gang is not placed: for the condition, for people, and for counting.
type refusal struct{ reason, message, rule string }

// refusalOf says why the gang waits.
func (p *GangPlacement) refusalOf(x *waiting.Question, out waiting.Outcome) refusal {
	if turn := out.Wait.Sweep; turn != nil {
		return refusal{explanation.SweepTurn, turn.String(), ruleSweep}
	}
	no := refusal{explanation.NoRoom, besideLeases(x.Group.Namespace, out.Wait), ruleTurn}
	if r := out.Wait.Refusal; r != nil && r.Wrong != nil {
		return refusal{explanation.WrongRequest, r.String(), ruleRequest}
	} else if r != nil {
		no = refusal{explanation.NoRoom, r.String(), ruleOf(r.Short)}
		no.message += x.Choices[0].Note() + out.Wait.Note()
	}
	no.message += leaseOf(out)
	if out.Wait.Unpaid != nil {
		no.message += "; workloads of a lower priority would lose more work than its earlier start is worth"
	}
	return no
}

// besideLeases is for a gang that has room, but not beside the places of earlier ones. It names those of the gang's own namespace: what
// others have is no business of who reads it.
func besideLeases(namespace string, w contention.Wait) string {
	var names []string
	others := 0
	for _, id := range w.Of {
		if name, _ := waiting.NameOf(id); name.Namespace == namespace {
			names = append(names, name.String())
		} else {
			others++
		}
	}
	if others > 0 {
		names = append(names, fmt.Sprintf("%d of other namespaces", others))
	}
	text := "the nodes that would hold it are reserved for " + strings.Join(names, ", ")
	if w.At != contention.None && w.At > 0 {
		text += standing.Until(instant(w.At))
	}
	return text
}

// leaseOf says which place the gang has itself.
func leaseOf(out waiting.Outcome) string {
	l := out.Lease
	switch {
	case l != nil && l.Reason == contention.Preemption:
		return fmt.Sprintf(
			"; a place is reserved for it in %s, which %d workloads have yet to leave",
			l.Within,
			len(out.Wait.Of),
		)
	case l == nil || l.Reason != contention.Head:
		return ""
	case l.Open:
		return "; it has a place in " + l.Within.String() + ", which others may use: too many accelerators would idle until it is free"
	case l.Firm:
		return "; a place is reserved for it in " + l.Within.String() + standing.ExpectedAt(instant(l.Instant))
	}
	return "; a place is reserved for it in " + l.Within.String() + standing.EstimatedAt(instant(l.Instant))
}

// turnOf is where a gang with a lease stands in the queue, but for its position.
func turnOf(l *contention.Lease) standing.Turn {
	if l == nil || l.Reason != contention.Head && l.Reason != contention.Preemption {
		return standing.Turn{}
	}
	turn := standing.Turn{Reserved: l.Within.String(), Open: l.Open, Estimated: !l.Firm && l.Reason == contention.Head}
	if l.Instant != contention.None && l.Instant > 0 {
		turn.Start = instant(l.Instant)
	}
	return turn
}

// placeOf is where a plan puts a gang: nothing is known of it if the filters chose other nodes.
func placeOf(plan *plan) *standing.Place {
	at := plan.placed.Placement
	if plan.held < len(plan.pins) || len(at.Nodes) == 0 {
		return &standing.Place{}
	}
	nodes := slices.Clone(at.Nodes)
	slices.Sort(nodes)
	return &standing.Place{
		Nodes: len(slices.Compact(nodes)), Domain: at.Within.String(), Quality: 1 / (1 + at.Gap()),
	}
}

func instant(at int64) string { return time.Unix(at, 0).UTC().Format(time.RFC3339) }

// tell explains a refusal. What would be without the victims of a preemption concerns no one, and an elastic gang that would take more members does not wait. lease is the gang's own, nil for none.
func (p *GangPlacement) tell(q question, no refusal, lease *contention.Lease) {
	if q.fleet == withoutVictims || q.grows() {
		return
	}
	turn, id := turnOf(lease), waiting.IDOf(q.key)
	turn.Position = p.queue.Position(id)
	if told, ok := p.queue.Foreseen(id); ok && no.reason == explanation.NoRoom {
		no.message += standing.Start{
			Low: instant(
				told.At + told.Low,
			),
			Middle: instant(told.At + told.Middle),
			High:   instant(told.At + told.High),
		}.String()
	}
	p.explain.Waits(q.group, no.reason, no.message, turn)
	metrics.Shortfalls.WithLabelValues(no.rule).Inc()
}

// countStart counts how good a lease's instant was.
func (p *GangPlacement) countStart(expected time.Time) {
	late := p.clock.Since(expected)
	switch {
	case expected.IsZero():
		metrics.Reservations.WithLabelValues(metrics.ReservationOpen).Inc()
		return
	case late > 0:
		metrics.Reservations.WithLabelValues(metrics.ReservationLate).Inc()
	default:
		metrics.Reservations.WithLabelValues(metrics.ReservationKept).Inc()
	}
	metrics.ReservationError.Observe(late.Abs().Seconds())
}
