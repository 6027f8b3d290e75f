package contention_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
)

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

// randomScene draws a scene: a few cliques, jobs of all kinds, nodes that fail and return.
func randomScene(seed uint64) contentiontest.Scene {
	r := rand.New(rand.NewPCG(seed, 1))
	s := contentiontest.Scene{Cliques: 1 + r.IntN(3), Nodes: 2 + r.IntN(5), GPUs: []int{1, 4, 8}[r.IntN(3)], CPUs: 16}
	for i := range 10 + r.IntN(30) {
		s.Jobs = append(s.Jobs, randomJob(r, s, fmt.Sprintf("j%02d", i)))
	}
	for range r.IntN(4) {
		at, node := int64(r.IntN(6*hour)), r.IntN(s.Cliques*s.Nodes)
		kind := []contentiontest.EventKind{contentiontest.Fail, contentiontest.Cordon}[r.IntN(2)]
		s.Events = append(s.Events,
			contentiontest.Event{At: at, Kind: kind, Nodes: []int{node}},
			contentiontest.Event{
				At: at + int64(1+r.IntN(20*minute)), Kind: contentiontest.Return, Nodes: []int{node},
			})
	}
	for range r.IntN(3) {
		at, job := int64(r.IntN(6*hour)), s.Jobs[r.IntN(len(s.Jobs))].Name
		s.Events = append(s.Events, contentiontest.Event{At: at, Kind: contentiontest.Suspend, Job: job})
	}
	return s
}

func randomJob(r *rand.Rand, s contentiontest.Scene, name string) contentiontest.Job {
	j := contentiontest.Job{
		Name: name, Arrives: int64(r.IntN(4 * hour)), Members: 1 + r.IntN(s.Cliques*s.Nodes), GPUs: s.GPUs,
		Priority: int32(r.IntN(4) * 5), Runs: int64(1+r.IntN(90)) * minute, Preemptible: r.IntN(2) == 0,
		Grace: int64(r.IntN(2) * 30), NeverPreempts: r.IntN(8) == 0,
	}
	if j.Priority == 15 { // a quarter evict whatever that costs
		j.Priority += contention.Urgent
	}
	if r.IntN(2) == 0 {
		j.Members = 1
	}
	if r.IntN(3) == 0 {
		j.GPUs = 1 + r.IntN(s.GPUs)
	}
	if r.IntN(3) == 0 && j.Members <= s.Nodes {
		j.Require = contentiontest.Clique
	}
	switch r.IntN(4) {
	case 0:
		j.Says, j.Certainty = j.Runs, contention.Certain
	case 1:
		j.Says, j.Certainty = j.Runs+int64(r.IntN(30))*minute, contention.Certain
	case 2:
		j.Says, j.Certainty = max(minute, j.Runs+int64(r.IntN(60)-30)*minute), contention.Reported
	}
	if r.IntN(6) == 0 && j.Members > 1 {
		j.Min = 1 + r.IntN(j.Members)
	}
	return j
}

// randomSweeps draws a scene in which most jobs are trials of some sweeps. Trials of a sweep disagree about the limit
// now and then.
func randomSweeps(seed uint64) contentiontest.Scene {
	s, r := randomScene(seed), rand.New(rand.NewPCG(seed, 5))
	limits := []int{1 + r.IntN(2), 1 + r.IntN(3), 4}
	for i := range s.Jobs {
		j, of := &s.Jobs[i], r.IntN(len(limits)+1)
		if of == len(limits) {
			continue
		}
		j.Sweep, j.Limit = fmt.Sprintf("team/s%d", of), limits[of]
		if r.IntN(8) == 0 {
			j.Limit = r.IntN(4)
		}
		if r.IntN(4) == 0 {
			s.Events = append(s.Events, contentiontest.Event{
				At: j.Arrives + int64(r.IntN(3*hour)), Kind: contentiontest.Suspend, Job: j.Name,
			})
		}
	}
	for range r.IntN(2) {
		s.Events = append(s.Events, contentiontest.Event{At: int64(r.IntN(6 * hour)), Kind: contentiontest.FailOver})
	}
	return s
}

// Never do more trials of a sweep run than one that starts allows, none waits for a turn that it never gets, and none
// has a place meanwhile.
func TestMachine_KeepsSweepsWithinTheirLimits(t *testing.T) {
	for seed := range uint64(scenes(t)) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			played(t, randomSweeps(seed))
			end(t, randomSweeps(seed), unpriced())
			end(t, randomSweeps(seed), arrivals())
		})
	}
}

// played plays a scene to its end and returns the log.
func played(t *testing.T, s contentiontest.Scene) []string {
	t.Helper()
	return end(t, s, contention.DefaultPolicy()).Log
}

// unpriced returns a policy by which entities evict whatever that costs.
func unpriced() contention.Policy {
	p := contention.DefaultPolicy()
	p.Terms = contention.UnpricedTerms()
	return p
}

// arrivals returns a policy by which entities start in the order of arrival, whatever they evict costs.
func arrivals() contention.Policy {
	p := unpriced()
	p.Discipline = contention.Backfill()
	return p
}

// end plays a scene to its end.
func end(t *testing.T, s contentiontest.Scene, policy contention.Policy) *contentiontest.Player {
	t.Helper()
	p, err := contentiontest.NewPlayer(s, policy)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Play(60 * day); err != nil {
		t.Fatalf("%v\n%s", err, last(p.Log))
	}
	if left := p.Queue(); left != "no job waits\n" {
		t.Fatalf("after two months without arrivals there wait\n%s%s", left, last(p.Log))
	}
	return p
}

// last returns the last lines of a log.
func last(log []string) string {
	const most = 400
	return strings.Join(log[max(0, len(log)-most):], "\n")
}

// The player checks the invariants of contentiontest after every evaluation and every round, by counting anew. In the
// end all jobs have run.
func TestMachine_KeepsItsInvariants(t *testing.T) {
	for seed := range uint64(scenes(t)) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			played(t, randomScene(seed))
			end(t, randomScene(seed), unpriced())
			end(t, randomScene(seed), arrivals())
		})
	}
}

var randomScenes = flag.Int("scenes", 80, "how many random scenes to draw")

// scenes returns the number of random scenes to draw.
func scenes(t *testing.T) int {
	t.Helper()
	if testing.Short() {
		return min(*randomScenes, 50)
	}
	return *randomScenes
}

// Equal values give equal actions, in whatever order they are listed.
func TestMachine_IgnoresTheOrderOfItsInput(t *testing.T) {
	for seed := range uint64(scenes(t) / 8) {
		s := randomScene(seed)
		want := played(t, s)
		r := rand.New(rand.NewPCG(seed, 2))
		r.Shuffle(len(s.Jobs), func(i, k int) { s.Jobs[i], s.Jobs[k] = s.Jobs[k], s.Jobs[i] })
		if got := played(t, s); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s", seed, firstDifference(want, got))
		}
	}
}

func firstDifference(want, got []string) string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Sprintf("line %d is %q, want %q", i+1, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(got), len(want))
}

// A new machine with the old one's State continues as the old one would have. (With guessed ends it may see earlier
// that a guess has become a later one; then only the invariants hold.)
func TestMachine_SurvivesFailOver(t *testing.T) {
	for seed := range uint64(scenes(t) / 4) {
		r := rand.New(rand.NewPCG(seed, 3))
		var failOvers []contentiontest.Event
		for range 5 {
			failOvers = append(failOvers, contentiontest.Event{
				At: hour + int64(r.IntN(5*hour)), Kind: contentiontest.FailOver,
			})
		}
		s := certainScene(seed)
		want := started(played(t, s))
		s.Events = append(s.Events, failOvers...)
		if got := started(played(t, s)); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s", seed, firstDifference(want, got))
		}
		guessed := randomScene(seed)
		guessed.Events = append(guessed.Events, failOvers...)
		played(t, guessed)
	}
}

// started returns the lines about starts and evictions.
func started(log []string) []string {
	return slices.DeleteFunc(slices.Clone(log), func(line string) bool {
		return !strings.Contains(line, " starts ") && !strings.Contains(line, " preempts ")
	})
}

// If all ends are certain and hold, no earlier entity arrives and no node is lost, the head starts at the instant that
// its lease named first, whatever arrives after it.
func TestLease_HeadStartsAtItsInstant(t *testing.T) {
	told := 0
	for seed := range uint64(scenes(t)) {
		s := certainScene(seed)
		p, err := contentiontest.NewPlayer(s, contention.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Play(60 * day); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(p.Log, "\n"))
		}
		instant, start, opened := headOf(p.Log)
		if opened || instant == "" {
			continue
		}
		if told++; start != instant {
			t.Errorf(
				"seed %d: the head starts at %s, its lease said %s\n%s",
				seed,
				start,
				instant,
				strings.Join(p.Log, "\n"),
			)
		}
	}
	if told < scenes(t)/2 {
		t.Errorf("only %d heads had a lease: the scenes are wrong", told)
	}
}

// certainScene draws a full fleet whose units have certain ends, a head of priority 1, and a stream of others.
func certainScene(seed uint64) contentiontest.Scene {
	r := rand.New(rand.NewPCG(seed, 4))
	s := contentiontest.Scene{Cliques: 1 + r.IntN(3), Nodes: 3 + r.IntN(6), GPUs: 8}
	for node := range s.Cliques * s.Nodes {
		if r.IntN(4) > 0 {
			ends := int64(1+r.IntN(120)) * minute
			s.Jobs = append(s.Jobs, contentiontest.Job{
				Name: fmt.Sprintf("r%02d", node), Members: 1, GPUs: 1 + r.IntN(8), Runs: hour + ends,
				Says: hour + ends, Certainty: contention.Certain, On: []int{node}, Priority: 2,
			})
		}
	}
	s.Jobs = append(s.Jobs, contentiontest.Job{
		Name: "head", Arrives: hour, Members: 2 + r.IntN(s.Nodes-1), GPUs: 8, Runs: hour, Says: hour, Priority: 1,
		Certainty: contention.Certain, Require: []string{"", contentiontest.Clique}[r.IntN(2)],
	})
	for i := range 20 {
		j := randomJob(r, s, fmt.Sprintf("x%02d", i))
		j.Arrives, j.Priority, j.Min = hour+int64(1+r.IntN(2*hour)), 0, 0
		j.Says, j.Certainty = max(j.Says, j.Runs), contention.Certain
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

// headOf returns the first instant of the head's lease, its start, and whether the lease was ever open.
func headOf(log []string) (instant, start string, opened bool) {
	for _, line := range log {
		words := strings.Fields(line)
		if words[1] != "head" {
			continue
		}
		opened = opened || strings.Contains(line, ", open from ")
		if _, after, ok := strings.Cut(line, ", closed from "); ok && instant == "" {
			instant, _, _ = strings.Cut(after, " ")
		}
		if words[2] == "starts" {
			start = words[0]
		}
	}
	return instant, start, opened
}

// An entity's position is one more than the number of those that are before it, whatever they ask.
func TestMachine_PositionCountsEntitiesBefore(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 1))
	m := contention.New(contention.DefaultPolicy())
	var orders []contention.Order
	for i := range 60 {
		e := contention.Entity{
			ID:       contention.ID(strconv.Itoa(i)),
			Question: strconv.Itoa(r.IntN(9)),
			Order: contention.Order{
				Priority: int32(r.IntN(3)),
				Since:    time.Unix(r.Int64N(20), 0),
				Name:     strconv.Itoa(i),
			},
		}
		m.Add(e)
		orders = append(orders, e.Order)
	}
	slices.SortFunc(orders, contention.Order.Compare)
	for at, order := range orders {
		if got := m.Position(contention.ID(order.Name)); got != at+1 {
			t.Errorf("%+v is at %d, want %d", order, got, at+1)
		}
	}
	if got := m.Position("nobody"); got != 0 {
		t.Errorf("one who does not wait is at %d", got)
	}
}
