package gangplacement

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// What stood in a gang's way, as a metric counts it: few words, whatever the fleet and its people call things.
const (
	ruleRequest = "request"
	ruleStray   = "running member"
	ruleNever   = "fleet too small"
	ruleBarred  = "barred nodes"
	ruleLimit   = "division of the gang"
	ruleLevel   = "required level"
	ruleRoom    = "room"
	ruleFilters = "filters"
	ruleTurn    = "turn"
	ruleSweep   = "sweep"
)

// planFailed is what people are told when a plan did not hold.
const planFailed = "the nodes chosen for it were refused by the scheduler's filters, as the conditions of its pods say; " +
	"it is planned again without %d of them"

// ruleOf is the rule that stood in the way most.
func ruleOf(s *topology.Shortfall) string {
	barred := 0
	for _, r := range s.Barred {
		barred += r.Nodes
	}
	switch {
	case s.Stray != "":
		return ruleStray
	case s.Never:
		return ruleNever
	case len(s.Limits) > 0:
		return ruleLimit
	case barred > s.Full:
		return ruleBarred
	case s.Level != (topology.Level{}) && s.Open >= s.Members:
		return ruleLevel
	}
	return ruleRoom
}

// observe counts and logs a decision.
func (p *GangPlacement) observe(ctx context.Context, q question, result string, more ...any) {
	took := p.clock.Since(q.began)
	metrics.DecisionDuration.WithLabelValues(result).Observe(took.Seconds())
	klog.FromContext(ctx).V(2).Info("Gang decided", append([]any{
		"podGroup", klog.KObj(q.group), "result", result, "waiting", len(q.waiting), "running", len(q.running),
		"needed", q.needed, "nodes", len(q.parent.Nodes), "took", took,
	}, more...)...)
}

// observePlacement counts and logs a decision that gives the gang its nodes.
func (p *GangPlacement) observePlacement(
	ctx context.Context, q question, view snapshot.View, placement topology.Placement,
) {
	metrics.Gap.Observe(placement.Gap())
	levels := view.Tree.Levels()
	domains := make(map[string]int, len(levels))
	for i, use := range placement.Levels {
		name, label := topology.LevelNode, topology.LevelNode
		if i < len(levels) {
			name = levels[i].Name
			label = p.levelLabel(levels[i])
		}
		domains[name] = use.Domains
		metrics.Domains.WithLabelValues(label).Observe(float64(use.Domains))
	}
	p.observe(ctx, q, metrics.ResultPlaced, "domains", domains, "cost", placement.Cost, "bound", placement.Bound)
}

// otherLevel stands in metrics for all levels that are none of the fleet's own: tenants can require any label key that nodes carry.
const otherLevel = "other"

// levelLabel returns a level's name as metrics have it.
func (p *GangPlacement) levelLabel(level topology.Level) string {
	if p.reader.Indices.Known(level) {
		return level.Name
	}
	return otherLevel
}

// The gauges about the fleet are read at most this often, about gangs like the last ones, and only if somebody has looked at the
// metrics since: they are as old as the last look at most.
const (
	gaugePause = 15 * time.Second
	lastGangs  = 32
)

// reading is what the gauges were read for, and how often somebody had looked at the metrics then.
type reading struct {
	at    time.Time
	looks uint64
	mix   []topology.Share
}

// gauge measures how broken up the free room is for gangs like this one and the last ones.
func (p *GangPlacement) gauge(now time.Time, l topology.Ledger, gang topology.Gang) {
	m := p.memory
	m.last.mix = append(m.last.mix, topology.Share{Members: len(gang.Members), Weight: 1})
	if len(m.last.mix) > lastGangs {
		m.last.mix = m.last.mix[1:]
	}
	looks := metrics.Reads()
	if len(gang.Shapes) == 0 || now.Sub(m.last.at) < gaugePause || looks == m.last.looks && !m.last.at.IsZero() {
		return
	}
	m.last.at, m.last.looks = now, looks
	for _, f := range topology.Fragmentation(l, gang.Shapes[0], m.last.mix) {
		if f.Level.Name != topology.LevelNode && !p.reader.Indices.Known(f.Level) {
			continue
		}
		metrics.Fragmentation.WithLabelValues(f.Level.Name).Set(f.Fraction())
		like := topology.Gang{
			Members: []topology.Member{{}}, Shapes: gang.Shapes[:1], Required: f.Level.Name,
		}
		if most, err := topology.Largest(l, like); err == nil {
			metrics.Largest.WithLabelValues(f.Level.Name).Set(float64(most))
		}
	}
}
