package measure_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/topology"
)

// twin counts the same as a tally, second by second, with nothing but loops over everything.
type twin struct {
	scene  *scenario.Scenario
	waits  map[int]int
	place  map[int][]int
	gone   map[int]bool
	end    map[int]int
	waited []int
	// used, capacity, busy, fragmentation and largest are of each second.
	used, capacity         []float64
	busy                   []bool
	fragmentation, largest []float64
}

// second adds up a second in which nothing changes.
func (w *twin) second() {
	capacity, used := 0.0, 0.0
	free := make([]int64, w.scene.Ledger.Len())
	for node := range free {
		if !w.gone[node] {
			capacity += 4
			free[node] = 4
		}
	}
	for job, nodes := range w.place {
		g := w.scene.Jobs[job].Gang
		for rank, node := range nodes {
			takes := g.Shapes[g.Members[rank].Shape].Demand[accelerator]
			free[node] -= takes
			used += float64(takes)
		}
	}
	for job := range w.waits {
		w.waited[job]++
	}
	w.used, w.capacity = append(w.used, used), append(w.capacity, capacity)
	w.busy = append(w.busy, len(w.waits) > 0)
	w.look(free)
}

// look fills racks of two nodes with gangs of each job's size.
func (w *twin) look(free []int64) {
	total, wasted, weight, largest := int64(0), 0.0, 0.0, int64(0)
	for node, n := range free {
		if w.gone[node] {
			free[node] = 0
			continue
		}
		total += n
	}
	for rack := 0; rack < len(free); rack += 2 {
		whole := int64(0)
		for _, node := range []int{rack, rack + 1} {
			if free[node] == 4 {
				whole += 4
			}
		}
		largest = max(largest, whole)
	}
	for i := range w.scene.Jobs {
		g := w.scene.Jobs[i].Gang
		takes, members := g.Shapes[0].Demand[accelerator], int64(len(g.Members))
		perNode := 4 / takes
		// How many nodes share a domain of the level at which the gang would be whole.
		together := len(free)
		if members <= perNode {
			together = 1
		} else if members <= 2*perNode {
			together = 2
		}
		usable := int64(0)
		for first := 0; first < len(free); first += together {
			holds := int64(0)
			for node := first; node < first+together; node++ {
				holds += free[node] / takes
			}
			usable += holds / members * members * takes
		}
		if total > 0 {
			wasted += float64(total-usable) / float64(total) * float64(members*takes)
			weight += float64(members * takes)
		}
	}
	w.fragmentation = append(w.fragmentation, wasted/max(weight, 1))
	w.largest = append(w.largest, float64(largest))
}

// average is the mean of values that a condition holds for, by their weights.
func average(values, weights []float64, when []bool) float64 {
	sum, weight := 0.0, 0.0
	for i, v := range values {
		if when == nil || when[i] {
			sum += v
			weight += weights[i]
		}
	}
	if weight == 0 {
		return 0
	}
	return sum / weight
}

// random plays a few jobs at random on eight nodes, while nodes leave and return.
func random(tb testing.TB, seed uint64) (measure.Scorecard, *twin) {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	s := racks(tb, 8)
	const last = 120
	submits := make([]int, 18) // fewer than 20, so that no size is left out as rare
	for i := range submits {
		submits[i] = r.IntN(last / 2)
	}
	slices.Sort(submits)
	for _, at := range submits {
		add(s, at, 1+r.IntN(30), 1+r.IntN(6), 1+r.Int64N(4))
	}
	tally := listen(s)
	w := &twin{
		scene:  s,
		waits:  make(map[int]int),
		place:  make(map[int][]int),
		gone:   make(map[int]bool),
		end:    make(map[int]int),
		waited: make([]int, len(s.Jobs)),
	}
	for at := range last {
		w.happen(r, tally, at)
		if at < last-1 {
			w.second()
		}
	}
	tally.node(last-1, engine.NodesReturned) // the run ends here, whatever happened before
	return tally.card(), w
}

// happen plays the events of an instant: ends, nodes, arrivals, starts.
func (w *twin) happen(r *rand.Rand, tally told, at int) {
	for job := range w.scene.Jobs {
		if nodes, runs := w.place[job]; runs && w.end[job] == at {
			tally.job(at, engine.Ended, job)
			delete(w.place, job)
		} else if runs && (r.IntN(60) == 0 || slices.ContainsFunc(nodes, func(n int) bool { return w.gone[n] })) {
			tally.job(at, engine.Preempted, job)
			delete(w.place, job)
			w.waits[job] = at
		}
	}
	switch node := r.IntN(8); {
	case r.IntN(10) > 0:
	case w.gone[node]:
		tally.node(at, engine.NodesReturned, node)
		delete(w.gone, node)
	default:
		tally.node(at, engine.NodesFailed, node)
		w.gone[node] = true
		for job := range w.scene.Jobs {
			if slices.Contains(w.place[job], node) {
				tally.job(at, engine.Disrupted, job)
				delete(w.place, job)
				w.waits[job] = at
			}
		}
	}
	for job := range w.scene.Jobs {
		if w.scene.Jobs[job].Submit == seconds(at) {
			tally.job(at, engine.Submitted, job)
			w.waits[job] = at
		}
		if _, waits := w.waits[job]; waits && r.IntN(3) == 0 {
			w.start(r, tally, at, job)
		}
	}
}

// start starts a job on random nodes that have room.
func (w *twin) start(r *rand.Rand, tally told, at, job int) {
	free := make([]int64, 8)
	for node := range free {
		if !w.gone[node] {
			free[node] = 4
		}
	}
	for other, nodes := range w.place {
		for _, node := range nodes {
			free[node] -= w.scene.Jobs[other].Gang.Shapes[0].Demand[accelerator]
		}
	}
	takes := w.scene.Jobs[job].Gang.Shapes[0].Demand[accelerator]
	var nodes []int
	for _, node := range r.Perm(8) {
		for free[node] >= takes && len(nodes) < len(w.scene.Jobs[job].Gang.Members) {
			nodes = append(nodes, node)
			free[node] -= takes
		}
	}
	if len(nodes) < len(w.scene.Jobs[job].Gang.Members) {
		return
	}
	tally.job(at, engine.Started, job, nodes...)
	delete(w.waits, job)
	w.place[job], w.end[job] = nodes, at+int(w.scene.Jobs[job].Duration.Seconds())
}

func TestTally_CountsLikeItsTwin(t *testing.T) {
	for seed := range uint64(200) {
		card, w := random(t, seed)
		first := int(w.scene.Jobs[0].Submit.Seconds()) // the window begins with the first job
		w.used, w.capacity, w.busy = w.used[first:], w.capacity[first:], w.busy[first:]
		w.fragmentation, w.largest = w.fragmentation[first:], w.largest[first:]
		ones := slices.Repeat([]float64{1}, len(w.used))
		sum, longest := 0, 0
		for _, waited := range w.waited {
			sum += waited
			longest = max(longest, waited)
		}
		peak := 0.0
		for i := range w.used {
			if w.capacity[i] > 0 {
				peak = max(peak, w.used[i]/w.capacity[i])
			}
		}
		equal(t, card, map[string]float64{
			"utilisation.mean": average(
				w.used,
				w.capacity,
				nil,
			),
			"utilisation.busy_mean":     average(w.used, w.capacity, w.busy),
			"utilisation.peak":          peak,
			"wait_seconds.mean":         float64(sum) / 18,
			"wait_seconds.max":          float64(longest),
			"fragmentation.mean":        average(w.fragmentation, ones, nil),
			"largest_placeable.mean":    average(w.largest, ones, nil),
			"gangs.pending":             float64(len(w.waits)),
			"violations.double_booking": 0,
		})
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// TestQuality_CostsAreThoseOfTheCore prices the decision core's placements: if the measure saw other levels, weights or
// domains than the core, qualities would compare unlike things.
func TestQuality_CostsAreThoseOfTheCore(t *testing.T) {
	ladders := [][]topology.Level{
		{{Name: "block", Key: "b", Weight: 300}, {Name: "rack", Key: "r"}},
		{
			{Name: "block", Key: "b", Weight: 50},
			{Name: "rack", Key: "r", Weight: 20},
			{Name: "nvlink", Key: "l", Weight: 700, Accelerator: true},
		},
		{},
	}
	judged := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		levels := ladders[r.IntN(len(ladders))]
		nodes := make([]topology.Node, 12)
		for i := range nodes {
			nodes[i] = topology.Node{Name: fmt.Sprintf("n%02d", i), Labels: map[string]string{}}
			for _, l := range levels {
				if r.IntN(8) > 0 { // some nodes lack a label; NVLink domains may cross racks
					nodes[i].Labels[l.Key] = fmt.Sprint(l.Name, r.IntN(4))
				}
			}
		}
		s := of(t, levels, nodes)
		j := add(s, 0, 10, 2+r.IntN(10), 1+r.Int64N(4))
		j.Gang.Communication = []topology.Communication{topology.Ring, topology.Chain, topology.AllToAll}[r.IntN(3)]
		if len(levels) > 0 && r.IntN(2) == 0 {
			j.Gang.Preferred = levels[r.IntN(len(levels))].Name
		}
		for i := range s.Ledger.Free {
			s.Ledger.Free[i] = topology.Capacity{100, r.Int64N(5)}
		}
		p, shortfall, err := topology.Place(s.Ledger, j.Gang)
		if err != nil {
			t.Fatal(err)
		}
		if shortfall != nil {
			continue
		}
		tally := listen(s)
		tally.job(0, engine.Submitted, 0)
		tally.job(0, engine.Started, 0, p.Nodes...)
		o := tally.Outcomes()[0]
		want := 1.0
		if !p.Optimal() {
			judged++
			want = float64(p.Bound) / float64(p.Cost)
		}
		if p.Bound > 0 && math.Abs(o.Q-want) > 1e-9 {
			t.Fatalf("seed %d: the core's own placement has quality %v, by its own bound %v", seed, o.Q, want)
		}
		for l, use := range p.Levels {
			if l < len(levels) && int(o.Domains[l]) != use.Domains || l == len(levels) && o.Nodes != use.Domains {
				t.Fatalf("seed %d: level %d has %v domains used, the core says %d", seed, l, o.Domains, use.Domains)
			}
		}
		// The same nodes in another order have the core's cost of a placement on these nodes.
		if shuffled := shuffle(r, p.Nodes); shuffled != nil {
			q, placed := priced(t, s, shuffled), place(t, s.Ledger, j.Gang, shuffled)
			if best := max(p.Bound, 1); p.Bound > 0 && math.Abs(q-float64(min(best, placed))/float64(placed)) > 1e-9 {
				t.Fatalf("seed %d: quality %v, the core's cost is %d of %d", seed, q, placed, p.Bound)
			}
		}
	}
	if judged == 0 {
		t.Error("no placement was less than the best")
	}
}

func shuffle(r *rand.Rand, nodes []int) []int {
	out := slices.Clone(nodes)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// priced is the quality of a start.
func priced(tb testing.TB, s *scenario.Scenario, nodes []int) float64 {
	tb.Helper()
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.job(0, engine.Started, 0, nodes...)
	return tally.Outcomes()[0].Q
}

// place returns the cost of a gang that runs already, by the core.
func place(tb testing.TB, l topology.Ledger, g topology.Gang, nodes []int) int64 {
	tb.Helper()
	g.Members = slices.Clone(g.Members)
	for i := range g.Members {
		g.Members[i].Placed, g.Members[i].Node = true, nodes[i]
	}
	p, shortfall, err := topology.Place(l, g)
	if err != nil || shortfall != nil {
		tb.Fatal(err, shortfall)
	}
	return p.Cost
}
