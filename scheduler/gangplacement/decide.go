package gangplacement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// refusal is the reason for which a gang is not placed: for the condition, for users, and for counting.
type refusal struct{ reason, message, rule string }

// refusalOf says why the gang waits.
func refusalOf(x *waiting.Question, out waiting.Outcome) refusal {
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

// besideLeases explains a gang that has room, but not beside the places of earlier ones. It names those of the gang's
// own namespace: the names of others are no business of its readers.
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

// turnOf returns the turn in the queue of a gang with a lease, but for its position.
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

// placeOf returns the place of a plan: unknown if the filters chose other nodes.
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

// recordRefusal explains a refusal, except in a dry run without victims, which concerns no user, and for an elastic
// gang that would take more members, which does not wait. lease is the gang's own, nil for none.
func (p *GangPlacement) recordRefusal(q question, no refusal, lease *contention.Lease) {
	if q.fleet == withoutVictims || q.grows() {
		return
	}
	turn, id := turnOf(lease), waiting.IDOf(q.key)
	turn.Position = p.queue.Position(id)
	if start, ok := p.queue.Foreseen(id); ok && no.reason == explanation.NoRoom {
		no.message += standing.Start{
			Low:    instant(start.At + start.Low),
			Middle: instant(start.At + start.Middle),
			High:   instant(start.At + start.High),
		}.String()
	}
	p.explain.Waits(q.group, no.reason, no.message, turn)
	p.metrics.countShortfall(no.rule)
}
