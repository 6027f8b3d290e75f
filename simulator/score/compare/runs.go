package compare

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Runs compares the schedulers of some runs, in the order in which they first appear; the others are compared with the
// first. Runs of different inputs are bad input, whose error names the difference: the fleet, the trace, its source,
// the load, the estimates, or the seeds. So are runs that did not end, and runs of one scheduler only.
func Runs(cards []measure.Scorecard) (Table, error) {
	g, err := groupRuns(cards)
	return held(g, err)
}

// Uneven compares runs as Runs does, but others may have played fewer seeds than the first scheduler: each is compared
// with it by the seeds that both have played, its means are of these, and a note says so. Schedulers that differ in
// placement only need fewer seeds.
func Uneven(cards []measure.Scorecard) (Table, error) {
	g, err := groupRuns(cards)
	if err == nil {
		g.seeds = g.seedsOf(g.schedulers[0])
	}
	return held(g, err)
}

// held returns the table of runs that can be compared.
func held(g *group, err error) (Table, error) {
	if err != nil {
		return Table{}, err
	}
	if faults := g.faults(); len(faults) > 0 {
		return Table{}, &badinput.Error{
			What: faults[0],
			Mend: "play all schedulers on the same inputs to their end, or compare them by force (--force)",
		}
	}
	return g.table(), nil
}

// Forced compares runs as Runs does, though their inputs differ; the table then has a watermark that names the
// differences. Seeds that not every scheduler has played are left out. Runs that cannot be compared at all are bad
// input: runs of one scheduler only, two of one seed, or no seed in common.
func Forced(cards []measure.Scorecard) (Table, error) {
	g, err := groupRuns(cards)
	if err != nil {
		return Table{}, err
	}
	if len(g.seeds) == 0 {
		return Table{}, &badinput.Error{
			What: "the schedulers have no seed in common", Mend: "play all of them with the same --seeds",
		}
	}
	t := g.table()
	if faults := g.faults(); len(faults) > 0 {
		t.Watermark = "NOT COMPARABLE: " + strings.Join(faults, "; ")
	}
	return t, nil
}

// group is runs by scheduler and seed.
type group struct {
	cards []measure.Scorecard
	// schedulers are in the order in which they first appear; runs has their runs by seed. seeds are those that all
	// have played, or if they are uneven those of the first.
	schedulers []string
	seeds      []uint64
	runs       map[string]map[uint64]*measure.Scorecard
	// all are the seeds that any has played.
	all []uint64
}

// seedsOf returns the seeds that a scheduler has played.
func (g *group) seedsOf(scheduler string) []uint64 {
	return slices.DeleteFunc(slices.Clone(g.all), func(seed uint64) bool { return g.runs[scheduler][seed] == nil })
}

// counted returns the seeds by which a scheduler is compared.
func (g *group) counted(scheduler string) []uint64 {
	return slices.DeleteFunc(slices.Clone(g.seeds), func(seed uint64) bool { return g.runs[scheduler][seed] == nil })
}

func groupRuns(cards []measure.Scorecard) (*group, error) {
	g := &group{cards: cards, runs: make(map[string]map[uint64]*measure.Scorecard)}
	for i := range cards {
		card := &cards[i]
		if g.runs[card.Scheduler] == nil {
			g.schedulers = append(g.schedulers, card.Scheduler)
			g.runs[card.Scheduler] = make(map[uint64]*measure.Scorecard)
		}
		if g.runs[card.Scheduler][card.Seed] != nil {
			return nil, &badinput.Error{What: "there are two runs of " + name(card), Mend: "leave one of them out"}
		}
		g.runs[card.Scheduler][card.Seed] = card
		if !slices.Contains(g.seeds, card.Seed) {
			g.seeds = append(g.seeds, card.Seed)
		}
	}
	if len(g.schedulers) < 2 {
		return nil, &badinput.Error{
			What: fmt.Sprintf("there are runs of %d schedulers, and a comparison needs two", len(g.schedulers)),
			Mend: "name several in --schedulers",
		}
	}
	slices.Sort(g.seeds)
	g.all = slices.Clone(g.seeds)
	g.seeds = slices.DeleteFunc(g.seeds, func(seed uint64) bool {
		return slices.ContainsFunc(g.schedulers, func(s string) bool { return g.runs[s][seed] == nil })
	})
	return g, nil
}

// name identifies the run of a scorecard.
func name(card *measure.Scorecard) string {
	return fmt.Sprintf("%s with seed %d", card.Scheduler, card.Seed)
}

// faults returns the differences that make the runs incomparable, a sentence each.
func (g *group) faults() []string {
	faults := g.differing()
	for i := range g.cards {
		card := &g.cards[i]
		if card.Partial != "" {
			faults = append(faults, fmt.Sprintf("the run of %s is partial: %s", name(card), card.Partial))
		}
		if !slices.Contains(g.seeds, card.Seed) || len(g.counted(card.Scheduler)) == 0 {
			faults = append(
				faults,
				fmt.Sprintf("the seeds differ: not every scheduler has a run with seed %d, which %s has",
					card.Seed, card.Scheduler),
			)
		}
	}
	return faults
}

// differing are the inputs that differ. Sources may depend on the seed, so each is compared with the first run of its
// seed.
func (g *group) differing() []string {
	var faults []string
	for _, field := range []struct {
		name   string
		bySeed bySeed
		of     func(*measure.Scorecard) string
	}{
		{"fleet", false, func(c *measure.Scorecard) string {
			return fmt.Sprintf("%s of %d nodes and %d GPUs", c.Fleet, c.Nodes, c.GPUs)
		}},
		{"trace", false, func(c *measure.Scorecard) string { return c.Trace }},
		{"source", true, func(c *measure.Scorecard) string { return c.Source }},
		{"load", false, func(c *measure.Scorecard) string { return number(c.Load) }},
		{"estimates", false, func(c *measure.Scorecard) string { return number(c.Estimates) }},
		{"costs of time", false, func(c *measure.Scorecard) string { return settings(c).String() }},
		{"number of jobs", true, func(c *measure.Scorecard) string { return strconv.Itoa(c.Gangs.Submitted) }},
	} {
		firsts := make(map[uint64]*measure.Scorecard)
		for i := range g.cards {
			card, key := &g.cards[i], uint64(0)
			if field.bySeed {
				key = card.Seed
			}
			first := firsts[key]
			if first == nil {
				firsts[key] = card
				continue
			}
			if a, b := field.of(first), field.of(card); a != b && card.Partial == "" && first.Partial == "" {
				faults = append(
					faults,
					fmt.Sprintf("the %s differs: %q of %s, %q of %s", field.name, a, name(first), b, name(card)),
				)
				break
			}
		}
	}
	return faults
}

// bySeed says that a field is compared among the runs of a seed only.
type bySeed bool

// table compares the runs of seeds that all schedulers have played.
func (g *group) table() Table {
	first := &g.cards[0]
	t := Table{
		Schedulers: g.schedulers, Seeds: g.seeds, Fleet: first.Fleet, Trace: first.Trace, Load: first.Load,
		Estimates: first.Estimates, Synthetic: first.Synthetic, Notes: g.notes(), Rows: []Row{},
	}
	definitions := measure.Definitions()
	if g.shared() {
		definitions = measure.ArrivalDefinitions()
		a := allocation(g.cards)
		t.Allocation = &a
	}
	if !settings(first).Off() {
		t.Costs = new(settings(first))
		definitions = slices.Concat(costly(definitions), measure.CostDefinitions())
	}
	for _, d := range definitions {
		if d.Name != busy {
			t.Rows = append(t.Rows, g.row(d))
		}
	}
	t.Classes = g.classes()
	return t
}

// busy is the allocation while jobs wait, which no table has: each scheduler decides itself when jobs wait, so it
// compares nothing.
const busy = "utilisation.busy_mean"

// settings returns the settings of a run that cost time.
func settings(card *measure.Scorecard) cost.Settings {
	if card.Costs == nil {
		return cost.Settings{}
	}
	return card.Costs.Settings
}

// costly puts goodput first: where placements and starts cost time, it is the one number that sums up all others.
func costly(definitions []measure.Definition) []measure.Definition {
	goodput, found := measure.DefinitionOf("goodput.mean")
	if !found {
		return definitions
	}
	rest := slices.DeleteFunc(definitions, func(d measure.Definition) bool { return d.Name == goodput.Name })
	return slices.Insert(rest, 0, goodput)
}

// row compares one number.
func (g *group) row(d measure.Definition) Row {
	return g.compared(d, func(card *measure.Scorecard) (float64, bool) { return d.Of(*card), true })
}

// compared compares a number that runs of some seeds may lack.
func (g *group) compared(d measure.Definition, of func(*measure.Scorecard) (float64, bool)) Row {
	row := Row{Name: d.Name, Title: d.Title, Unit: d.Unit, Better: d.Better, Formula: d.Formula}
	for i, scheduler := range g.schedulers {
		var first, values []float64
		for _, seed := range g.counted(scheduler) {
			ours, has := of(g.runs[g.schedulers[0]][seed])
			theirs, have := of(g.runs[scheduler][seed])
			if has && have {
				first, values = append(first, ours), append(values, theirs)
			}
		}
		mean, _ := spread(values)
		row.Means = append(row.Means, measure.Tidy(mean))
		if i > 0 {
			row.Against = append(row.Against, differ(first, values, d.Better))
		}
	}
	return row
}

// notes returns the notes for the reader.
func (g *group) notes() []string {
	var notes []string
	first := &g.cards[0]
	if len(g.seeds) == 1 {
		notes = append(
			notes,
			"one seed: nothing follows about others, so there are no intervals; 5 seeds or more tell more",
		)
	}
	for _, scheduler := range g.schedulers[1:] {
		if seeds := g.counted(scheduler); len(seeds) < len(g.seeds) {
			notes = append(notes, fmt.Sprintf(
				"%s has played the seeds %s only: its means are of these, and differences are to the same seeds of %s",
				scheduler, strings.Trim(fmt.Sprint(seeds), "[]"), g.schedulers[0],
			))
		}
	}
	if len(g.seeds) > 1 && g.unmoved() {
		notes = append(
			notes,
			"the seeds make no difference here, each scheduler does the same with all of them: intervals are of nothing but the clock",
		)
	}
	if first.Synthetic {
		notes = append(notes, "the workload was made, it is no record: "+first.Source)
	}
	for _, field := range []struct {
		what string
		of   func(*measure.Scorecard) string
	}{
		{"the runs are of different commits", func(c *measure.Scorecard) string { return c.Commit }},
		{"the runs are of different engines", func(c *measure.Scorecard) string { return c.Engine }},
		{"wall times are of different machines", func(c *measure.Scorecard) string { return c.Machine }},
	} {
		var values []string
		for i := range g.cards {
			if v := field.of(&g.cards[i]); !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if len(values) > 1 {
			notes = append(notes, field.what+": "+strings.Join(values, ", "))
		}
	}
	if left := g.waiting(); left != "" {
		notes = append(notes, "gangs still wait at the end, so true waits are longer: "+left)
	}
	for _, note := range first.Notes {
		notes = append(notes, name(first)+": "+note)
	}
	return notes
}

// unmoved reports whether every scheduler has the same waits and ends with all seeds, as it has if nothing is drawn.
func (g *group) unmoved() bool {
	for _, scheduler := range g.schedulers {
		seeds := g.counted(scheduler)
		first := g.runs[scheduler][seeds[0]]
		for _, seed := range seeds[1:] {
			run := g.runs[scheduler][seed]
			if run.Wait != first.Wait || run.JCT != first.JCT || run.Gangs != first.Gangs ||
				!maps.Equal(run.AllocationAtArrival, first.AllocationAtArrival) {
				return false
			}
		}
	}
	return true
}

// waiting returns the number of gangs that each scheduler left waiting, of all seeds together; empty if none.
func (g *group) waiting() string {
	var left []string
	for _, scheduler := range g.schedulers {
		sum := 0
		for _, seed := range g.counted(scheduler) {
			sum += g.runs[scheduler][seed].Gangs.Pending
		}
		if sum > 0 {
			left = append(left, fmt.Sprintf("%d of %s", sum, scheduler))
		}
	}
	if len(left) == 0 || g.shared() {
		return ""
	}
	return strings.Join(left, ", ")
}
