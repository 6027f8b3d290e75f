package gangplacement

import (
	"context"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// The obstacles of a gang, as a metric counts them: few words, independent of the names in the fleet.
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
	ruleDevices = "devices"
)

// planFailed is the message for a plan that did not hold.
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

// decisionMetrics counts and logs decisions, and measures the fleet for the gauges.
//
// Only the scheduling loop uses it, so it has no lock.
type decisionMetrics struct {
	clock clock.PassiveClock
	// indices distinguish the levels of the fleet from label keys that a gang requires.
	indices *snapshot.Indices
	// families names the label families that were logged last.
	families string
	// last is the last reading of the gauges.
	last reading
}

// observe counts and logs a decision.
func (d *decisionMetrics) observe(ctx context.Context, q question, result string, more ...any) {
	took := d.clock.Since(q.began)
	metrics.DecisionDuration.WithLabelValues(result).Observe(took.Seconds())
	klog.FromContext(ctx).V(2).Info("Gang decided", append([]any{
		"podGroup", klog.KObj(q.group), "result", result, "waiting", len(q.waiting), "running", len(q.running),
		"needed", q.needed, "nodes", len(q.parent.Nodes), "took", took,
	}, more...)...)
}

// observePlacement counts and logs a decision that gives the gang its nodes.
func (d *decisionMetrics) observePlacement(
	ctx context.Context, q question, view snapshot.View, placement topology.Placement,
) {
	metrics.Gap.Observe(placement.Gap())
	levels := view.Tree.Levels()
	domains := make(map[string]int, len(levels))
	for i, use := range placement.Levels {
		name, label := topology.LevelNode, topology.LevelNode
		if i < len(levels) {
			name = levels[i].Name
			label = d.levelLabel(levels[i])
		}
		domains[name] = use.Domains
		metrics.Domains.WithLabelValues(label).Observe(float64(use.Domains))
	}
	d.observe(ctx, q, metrics.ResultPlaced, "domains", domains, "cost", placement.Cost, "bound", placement.Bound)
}

// countShortfall counts a gang that waits, by the rule that stands in its way.
func (*decisionMetrics) countShortfall(rule string) { metrics.Shortfalls.WithLabelValues(rule).Inc() }

// observeStart counts a start by the accuracy of its lease's instant.
func (d *decisionMetrics) observeStart(expected time.Time) {
	late := d.clock.Since(expected)
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

// logFamilies logs the label families of the fleet when they change.
func (d *decisionMetrics) logFamilies(ctx context.Context) {
	if found := d.indices.Found(); found != d.families {
		d.families = found
		klog.FromContext(ctx).Info("Detected topology labels", "families", found)
	}
}

// otherLevel stands in metrics for all levels that are none of the fleet's own: tenants can require any label key that
// nodes carry.
const otherLevel = "other"

// levelLabel returns a level's name as metrics have it.
func (d *decisionMetrics) levelLabel(level topology.Level) string {
	if d.indices.Known(level) {
		return level.Name
	}
	return otherLevel
}

// The gauges about the fleet are read at most this often, about gangs like the last ones, and only if the metrics were
// read since: they are as old as the last look at most.
const (
	gaugePause = 15 * time.Second
	lastGangs  = 32
)

// reading is the input of the last reading of the gauges, and the number of reads of the metrics by then.
type reading struct {
	at    time.Time
	looks uint64
	mix   []topology.Share
}

// measureFleet sets the gauges of fragmentation and of the largest gang that fits, for gangs like this one and the last
// ones.
func (d *decisionMetrics) measureFleet(l topology.Ledger, gang topology.Gang) {
	d.last.mix = append(d.last.mix, topology.Share{Members: len(gang.Members), Weight: 1})
	if len(d.last.mix) > lastGangs {
		d.last.mix = d.last.mix[1:]
	}
	now, looks := d.clock.Now(), metrics.Reads()
	if len(gang.Shapes) == 0 || now.Sub(d.last.at) < gaugePause || looks == d.last.looks && !d.last.at.IsZero() {
		return
	}
	d.last.at, d.last.looks = now, looks
	for _, f := range topology.Fragmentation(l, gang.Shapes[0], d.last.mix) {
		if f.Level.Name != topology.LevelNode && !d.indices.Known(f.Level) {
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
