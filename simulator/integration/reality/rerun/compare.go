package rerun

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// Start is a start of a gang in virtual time.
type Start struct {
	Gang    string
	Attempt int
	// At is since the record's beginning.
	At    time.Duration
	Nodes []int
}

// starts collects the starts that an engine reports.
type starts struct {
	scene *scenario.Scenario
	all   []Start
	count map[string]int
	// fresh are the gangs that started on arrival.
	fresh map[string]bool
}

// Happens implements engine.Watcher.
func (s *starts) Happens(e engine.Event) {
	if e.Kind != engine.Started || e.Job == engine.None {
		return
	}
	job := &s.scene.Jobs[e.Job]
	attempt := s.count[job.ID]
	s.count[job.ID]++
	s.all = append(s.all, Start{job.ID, attempt, unscale(e.At), slices.Clone(e.Nodes)})
	if attempt == 0 {
		s.fresh[job.ID] = e.At == job.Submit
	}
}

// Decides implements engine.Watcher.
func (*starts) Decides(engine.Decision) {}

// Outcome is a record beside an engine's replay of it.
type Outcome struct {
	Record Record
	Delays Delays
	Starts []Start
	scene  *scenario.Scenario
	// fresh are the gangs that started on arrival, in virtual time.
	fresh map[string]bool
}

// Play lets an engine play the record three times. The first run shows which gangs wait; the second uses the measured
// delays of the others; the third counts.
func Play(ctx context.Context, player engine.Engine, machines fleet.Fleet, record Record) (Outcome, error) {
	out := Outcome{Record: record}
	var waited map[string]bool
	for range 3 {
		s, err := Scene(machines, record, waited, out.Delays)
		if err != nil {
			return Outcome{}, err
		}
		seen := &starts{scene: s, count: make(map[string]int), fresh: make(map[string]bool)}
		if err := player.Run(ctx, s, seen); err != nil {
			return Outcome{}, fmt.Errorf("playing the record: %w", err)
		}
		out.scene, out.Starts, out.fresh = s, seen.all, seen.fresh
		waited = make(map[string]bool)
		for _, j := range s.Jobs {
			waited[j.ID] = !seen.fresh[j.ID]
		}
		fresh := spread(out.reactions())
		out.Delays = Delays{Fresh: fresh.P50, Waited: fresh.P50 + Gather}
	}
	return out, nil
}

// reactions are, for gangs that found room on arrival, the times from there to the first observed binding.
func (o Outcome) reactions() []time.Duration {
	return o.delays(func(run Run) time.Duration { return run.First.Sub(o.Record.comes(run)) })
}

// delays measures the first runs of gangs that found room on arrival.
func (o Outcome) delays(of func(Run) time.Duration) []time.Duration {
	var out []time.Duration
	for _, run := range o.Record.Runs {
		if run.Attempt == 0 && o.fresh[run.Gang] && !run.Bound.IsZero() {
			out = append(out, of(run))
		}
	}
	return out
}

// Spread is the distribution of a measure.
type Spread struct{ P50, P95, Max time.Duration }

// spread sorts its argument.
func spread(all []time.Duration) Spread {
	if len(all) == 0 {
		return Spread{}
	}
	slices.Sort(all)
	at := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] } // the smallest with as many below
	return Spread{at(50), at(95), all[len(all)-1]}
}

// Comparison is the deviation of virtual time from reality.
type Comparison struct {
	Kind Kind
	Seed uint64
	// Gangs is the number of gangs, Starts that of their starts, those after a loss included.
	Gangs, Starts int
	// SameDomain and SameNodes are the numbers of starts in the same cliques, and with each rank on the same node.
	// Overtaken are pairs that started in another order, and not within a cycle of each other.
	SameDomain, SameNodes, Overtaken int
	// Waits are the differences between the waits of both, whatever their sign.
	Waits Spread
	// Making is the time from the creation of a TrainJob to its last pod, Binding from there to its last binding where
	// there was room, First the part of that to the first binding, Again from the loss of a node to the job's last new
	// pod.
	Making, Binding, First, Again Spread
	// Ending is the time from the end of a gang's first pod to that of its last.
	Ending Spread
	// Differences are the deviations, a line each.
	Differences []string
}

// Compare measures the deviation of virtual time from reality.
func Compare(o Outcome) Comparison {
	c := Comparison{Kind: o.Record.Plan.Kind, Seed: o.Record.Plan.Seed, Gangs: len(o.Record.Plan.Gangs)}
	c.First = spread(o.reactions())
	c.Binding = spread(o.delays(func(run Run) time.Duration { return run.Bound.Sub(o.Record.comes(run)) }))
	c.api(o)
	pairs := o.pairs(&c)
	var waits []time.Duration
	for _, p := range pairs {
		c.Starts++
		waits = append(waits, p.late().Abs())
		actual, virtual := o.domains(p.run.Nodes), o.domainsOf(p.start.Nodes)
		switch {
		case actual != virtual:
			c.note("%s is in %s, in virtual time in %s (%+d ms)", p.name(), actual, virtual, p.late().Milliseconds())
		case slices.Equal(p.run.Nodes, o.names(p.start.Nodes)):
			c.SameNodes++
			fallthrough
		default:
			c.SameDomain++
		}
	}
	c.Waits = spread(waits)
	c.order(pairs)
	return c
}

func (c *Comparison) note(format string, args ...any) {
	c.Differences = append(c.Differences, fmt.Sprintf(format, args...))
}

// api measures the time that the API and the controllers take, which virtual time leaves out.
func (c *Comparison) api(o Outcome) {
	var making, again, ending []time.Duration
	for i, g := range o.Record.Plan.Gangs {
		runs := o.Record.of(g.Name)
		for k, run := range runs {
			switch {
			case run.Whole.IsZero():
			case k == 0:
				making = append(making, run.Whole.Sub(o.Record.Asked[i]))
			default:
				again = append(again, run.Whole.Sub(o.Record.lostAt(runs[k-1])))
			}
			if !run.Free.IsZero() {
				ending = append(ending, run.Free.Sub(run.Ending))
			}
		}
	}
	c.Making, c.Again, c.Ending = spread(making), spread(again), spread(ending)
}

// pair is a start in both worlds.
type pair struct {
	run   Run
	start Start
	// whole, first and bound are the run's instants, since the record's beginning.
	whole, first, bound time.Duration
}

func (p pair) name() string {
	if p.run.Attempt == 0 {
		return p.run.Gang
	}
	return fmt.Sprintf("%s, started again,", p.run.Gang)
}

// late returns the excess of the gang's wait in reality. A gang that lost a node cannot start before its pods are there
// again.
func (p pair) late() time.Duration { return p.bound - max(p.start.At, p.whole) }

// pairs puts the starts of both worlds side by side; starts in only one of them are noted.
func (o Outcome) pairs(c *Comparison) []pair {
	virtual := make(map[runKey]Start)
	for _, s := range o.Starts {
		virtual[runKey{s.Gang, s.Attempt}] = s
	}
	var out []pair
	for _, run := range o.Record.Runs {
		key := runKey{run.Gang, run.Attempt}
		start, both := virtual[key]
		delete(virtual, key)
		switch {
		case run.Bound.IsZero() && !both:
		case run.Bound.IsZero() || !both:
			c.Starts++
			c.note("start %d of %s is in one of the worlds only", run.Attempt+1, run.Gang)
		default:
			begin := o.Record.Begin
			out = append(
				out,
				pair{run, start, o.Record.comes(run).Sub(begin), run.First.Sub(begin), run.Bound.Sub(begin)},
			)
		}
	}
	for _, s := range o.Starts {
		if _, alone := virtual[runKey{s.Gang, s.Attempt}]; alone {
			c.Starts++
			c.note("start %d of %s is in virtual time only", s.Attempt+1, s.Gang)
		}
	}
	return out
}

// order counts the pairs in which one gang overtook the other. Starts count as simultaneous if in either world there is
// no more between them than a cycle: the time in which the scheduler gathers changes, and that from a decision to the
// first binding.
func (c *Comparison) order(pairs []pair) {
	cycle := c.cycle()
	for i, a := range pairs {
		for _, b := range pairs[:i] {
			actual, virtual := a.first-b.first, a.start.At-b.start.At
			if cmp.Compare(actual, 0) == -cmp.Compare(virtual, 0) && actual.Abs() > cycle && virtual.Abs() > cycle {
				c.Overtaken++
				c.note("%s and %s start in another order: %d ms apart, in virtual time %d ms",
					b.name(), a.name(), actual.Milliseconds(), virtual.Milliseconds())
			}
		}
	}
}

// cycle returns the largest distance at which starts of one cycle may be seen.
func (c *Comparison) cycle() time.Duration { return Gather + c.First.P50 }

// domainsOf are the cliques of some nodes, in words.
func (o Outcome) domainsOf(nodes []int) string {
	tree := o.scene.Ledger.Tree
	level, _ := tree.Level(clique)
	var names []string
	for _, node := range nodes {
		name := tree.Node(node)
		if domain, in := tree.Domain(node, level); in {
			name = labelOf(domain)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// labelOf is the end of a domain's path, shortened after the first part of a UUID.
func labelOf(d topology.Domain) string {
	if len(d.Path) == 0 {
		return d.String()
	}
	first, _, _ := strings.Cut(d.Path[len(d.Path)-1], "-")
	return first
}

func (o Outcome) domains(names []string) string {
	var nodes []int
	for _, name := range names {
		if at, known := o.scene.Ledger.Tree.Index(name); known {
			nodes = append(nodes, at)
		}
	}
	return o.domainsOf(nodes)
}

func (o Outcome) names(nodes []int) []string {
	out := make([]string, len(nodes))
	for i, node := range nodes {
		out[i] = o.scene.Ledger.Tree.Node(node)
	}
	return out
}
