package scenarios

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// load is the demand of random gangs while they arrive, divided by the fleet's capacity.
const load = 1.1

// grounds is a fleet of random scenarios: nodes is the size of the largest gangs, levels are those that gangs may
// require.
type grounds struct {
	fleet  string
	nodes  int
	levels []string
}

// groundsOf returns the fleet of a seed.
func groundsOf(seed uint64) grounds {
	if seed%2 == 0 {
		return grounds{"gb200-72", 18, []string{"", levelRack, levelClique}}
	}
	return grounds{"h100-64", 16, []string{"", levelRack}}
}

// Random returns a randomly generated scenario of n gangs on about 64 nodes, a little more than these can hold: sizes
// from a part of a node to a clique, four priorities, half of them preemptible, a fifth elastic, some with a known end
// that may be wrong, and nodes that fail, are drained and return. Even seeds have GB200 cliques, odd ones nodes with
// eight GPUs. An error is a fault of this package.
func Random(seed uint64, n int) (*scenario.Scenario, error) {
	f, err := fleet.Open(groundsOf(seed).fleet)
	if err != nil {
		return nil, fmt.Errorf("building random scenario %d: %w", seed, err)
	}
	return built(seed, f, randomTrace(seed, n, f))
}

// RandomGraces is Random in which most preemptible gangs need some time to leave. All else of a seed is the same.
func RandomGraces(seed uint64, n int) (*scenario.Scenario, error) {
	f, err := fleet.Open(groundsOf(seed).fleet)
	if err != nil {
		return nil, fmt.Errorf("building random scenario %d: %w", seed, err)
	}
	t := randomTrace(seed, n, f)
	draw{rand.New(rand.NewPCG(seed, streamGraces))}.graces(t.Jobs)
	return built(seed, f, t)
}

// RandomSuspensions is Random in which some gangs are suspended or withdrawn, and return. All else of a seed is the
// same.
func RandomSuspensions(seed uint64, n int) (*scenario.Scenario, error) {
	s, err := Random(seed, n)
	if err != nil {
		return nil, err
	}
	draw{rand.New(rand.NewPCG(seed, streamSuspensions))}.suspensions(s)
	return s, nil
}

// RandomCosts is Random in which placements, starts and restarts cost time. All else of a seed is the same.
func RandomCosts(seed uint64, n int, costs cost.Settings) (*scenario.Scenario, error) {
	f, err := fleet.Open(groundsOf(seed).fleet)
	if err != nil {
		return nil, fmt.Errorf("building random scenario %d: %w", seed, err)
	}
	return costly(seed, f, randomTrace(seed, n, f), costs)
}

func built(seed uint64, f fleet.Fleet, t trace.Trace) (*scenario.Scenario, error) {
	return costly(seed, f, t, cost.Settings{})
}

func costly(seed uint64, f fleet.Fleet, t trace.Trace, costs cost.Settings) (*scenario.Scenario, error) {
	s, err := importer.New(f, t, scenario.Options{Seed: seed, Costs: costs})
	if err != nil {
		return nil, fmt.Errorf("building random scenario %d: %w", seed, err)
	}
	return s, nil
}

func randomTrace(seed uint64, n int, f fleet.Fleet) trace.Trace {
	of := groundsOf(seed)
	d := draw{rand.New(rand.NewPCG(seed, streamRandom))}
	t := trace.Trace{Name: fmt.Sprintf("random-%d", seed), Synthetic: true}
	gpus, most := 0, 0
	for i := range f.Nodes {
		amount := f.Nodes[i].Status.Allocatable["nvidia.com/gpu"]
		gpus, most = gpus+int(amount.Value()), max(most, int(amount.Value()))
	}
	hours := 0.0
	for i := range n {
		j := d.job(of.nodes, most, of.levels)
		j.ID = fmt.Sprintf("j%04d", i)
		hours += j.GPUHours()
		t.Jobs = append(t.Jobs, j)
	}
	span := time.Duration(hours / load / float64(gpus) * float64(time.Hour))
	for i := range t.Jobs {
		t.Jobs[i].Submit = d.between(0, span).Truncate(granule)
	}
	t.Events = d.outages(f, n/eventsEach, span)
	return t
}

const (
	// streamRandom is the stream of the seed from which scenarios are drawn.
	streamRandom = 22
	// streamGraces is the stream from which graces are drawn.
	streamGraces = 23
	// streamSuspensions is the stream from which suspensions are drawn; one in suspended gangs is suspended.
	streamSuspensions = 24
	suspended         = 4
	// granule divides the instants of submissions, so that several gangs arrive at one instant.
	granule = 20 * time.Second
	// eventsEach is the number of gangs for each outage.
	eventsEach = 40
)

// draw draws the parts of scenarios.
type draw struct{ *rand.Rand }

// one reports true with a chance of 1 to n.
func (d draw) one(n int) bool { return d.IntN(n) == 0 }

// between draws whole seconds.
func (d draw) between(from, to time.Duration) time.Duration {
	return from + time.Duration(d.Int64N(int64((to-from)/time.Second)+1))*time.Second
}

func (d draw) job(nodes, gpus int, levels []string) trace.Job {
	sizes := [...]int{1, 1, 1, 1, 2, 2, 3, 4, 8, nodes}
	count := sizes[d.IntN(len(sizes))]
	runs := [...]time.Duration{10 * time.Minute, time.Hour, 4 * time.Hour}
	j := trace.Job{
		Duration:    d.between(time.Minute, runs[d.IntN(len(runs))]),
		Podsets:     []trace.Podset{{Count: count, GPUs: gpus, CPU: 1000, Memory: 1 << 30}},
		Priority:    []int32{0, 0, 0, 5, 5, 10, contention.Urgent}[d.IntN(7)],
		Preemptible: d.one(2),
	}
	if d.one(3) {
		j.Podsets[0].GPUs = 1 << d.IntN(3)
	}
	if d.one(2) {
		j.Required = levels[d.IntN(len(levels))]
	}
	if d.one(5) && count > 1 {
		j.Podsets[0].Min = 1 + d.IntN(count)
	}
	switch d.IntN(5) {
	case 0, 1:
		j.Estimate = j.Duration
	case 2:
		j.Estimate = d.between(j.Duration/2, j.Duration)
	case 3:
		j.Estimate = d.between(j.Duration, 2*j.Duration)
	}
	return j
}

// graces gives preemptible gangs graces: none, some seconds, or as long as a checkpoint of a large model takes.
func (d draw) graces(jobs []trace.Job) {
	longest := [...]time.Duration{0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}
	for i := range jobs {
		if jobs[i].Preemptible {
			jobs[i].Grace = d.between(0, longest[d.IntN(len(longest))])
		}
	}
}

// suspensions suspends gangs, or withdraws them, while they wait if they do then, and restores or resumes them.
func (d draw) suspensions(s *scenario.Scenario) {
	for i := range s.Jobs {
		if !d.one(suspended) {
			continue
		}
		at := s.Jobs[i].Submit + d.between(0, 20*time.Minute)
		goes := scenario.Event{At: at, Kind: scenario.Suspend, Job: i}
		back := scenario.Event{At: at + d.between(time.Second, 20*time.Minute), Kind: scenario.Restore, Job: i}
		if d.one(2) {
			goes.Kind = scenario.Withdraw
		}
		if d.one(2) {
			back.Kind = scenario.Resume
		}
		s.Events = append(s.Events, goes, back)
	}
	slices.SortStableFunc(s.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
}

// outages lets n nodes fail or be drained, one at a time each, and return.
func (d draw) outages(f fleet.Fleet, n int, span time.Duration) []trace.Event {
	var events []trace.Event
	for _, node := range d.Perm(len(f.Nodes))[:min(n, len(f.Nodes))] {
		name, kind := f.Nodes[node].Name, trace.Fail
		if d.one(3) {
			kind = trace.Drain
		}
		at := d.between(0, span)
		away := d.between(time.Minute, 20*time.Minute)
		events = append(events, happens(kind, at, name), happens(trace.Return, at+away, name))
	}
	slices.SortStableFunc(events, func(a, b trace.Event) int { return int(a.At - b.At) })
	return events
}
