package direct_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
)

// The fleet is 128 nodes of eight GPUs. A stream of jobs of one GPU requests 1.3 times as much, from the beginning and
// past the end of every scene. The large gang arrives when the fleet has been full for a while.
const (
	largeComes = 600
	horizon    = 2600
)

// stream adds the small jobs; promises turns a job's actual run time into its declared bound.
func stream(tb testing.TB, promises func(r *rand.Rand, runs int64) int64) direct.Scene {
	tb.Helper()
	scene := fleet(tb, 128, 16)
	r := rand.New(rand.NewPCG(1, 3))
	for at, n := 0.0, 0; at < horizon; n++ {
		runs := 200 + r.Int64N(600)
		scene.Jobs = append(
			scene.Jobs,
			promised(job(fmt.Sprintf("s%05d", n), 1, 1, int64(at), runs), promises(r, runs)),
		)
		at += 500 / (1.3 * 1024)
	}
	return scene
}

func exactly(_ *rand.Rand, runs int64) int64 { return runs }

func unknownEnd(*rand.Rand, int64) int64 { return 0 }

func overestimated(r *rand.Rand, runs int64) int64 { return runs + r.Int64N(runs) }

// large adds a gang of so many nodes and returns its index.
func large(scene *direct.Scene, name string, nodes int, comes int64) int {
	scene.Jobs = append(scene.Jobs, promised(job(name, nodes, 8, comes, 300), 300))
	return len(scene.Jobs) - 1
}

// observations has what was seen of a scene until a large gang starts.
type observations struct {
	direct.Result
	own direct.Outcome
	// first is the time at which the gang became the first that waits, on the nodes on which a place was reserved for
	// it then.
	first int64
	on    map[int]bool
	// told is the first reported instant, 0 if none was known.
	told int64
	// longest is the last actual end of the units that ran at that instant, promised the last declared end, and onPlace
	// the last end of the units on the place.
	longest, promised, onPlace int64
	// last is the last reported instant.
	last int64
	// passed is the number that started after that and before the gang, late that of those that may end after it was to
	// start, within that of those on the nodes of its place.
	passed, late, within int
}

// watch plays the scene and looks after one gang.
func watch(t *testing.T, scene direct.Scene, options direct.Options, gang int) observations {
	t.Helper()
	w := observations{on: map[int]bool{}}
	runs := map[int]direct.Event{}
	options.Until = horizon
	result, err := direct.Run(scene, options, func(e direct.Event) {
		j := scene.Jobs[e.Job]
		if e.Kind == direct.Leased && e.Job == gang {
			w.last = e.Reserved
		}
		if e.Kind == direct.Leased && e.Job == gang && w.told == 0 && e.Reserved != direct.Forever {
			w.told = e.Reserved
		}
		switch {
		case e.Kind == direct.Ended:
			delete(runs, e.Job)
		case e.Kind == direct.Leased && e.Job == gang && w.first == 0:
			w.first = e.At
			for _, node := range e.Placement.Nodes {
				w.on[node] = true
			}
			for i, start := range runs {
				w.longest = max(w.longest, start.At+scene.Jobs[i].Runs)
				w.promised = max(w.promised, start.At+scene.Jobs[i].Promises)
				if w.on[start.Placement.Nodes[0]] {
					w.onPlace = max(w.onPlace, start.At+scene.Jobs[i].Runs)
				}
			}
			w.own.Reserved = e.Reserved
		case e.Kind == direct.Started && e.Job != gang:
			runs[e.Job] = e
			if w.first == 0 || w.own.Started != 0 {
				break
			}
			w.passed++
			if j.Promises == 0 || e.At+j.Promises > w.own.Reserved {
				w.late++
			}
			if w.on[e.Placement.Nodes[0]] && j.Arrives > largeComes {
				w.within++
			}
		case e.Kind == direct.Started:
			w.own.Started = e.At
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Result, w.own = result, result.Jobs[gang]
	t.Logf("first at %d, told %d, started %d; meanwhile %d passed, %d of them for longer; in use %.3f", w.first,
		w.own.Reserved, w.own.Started, w.passed, w.late, w.Utilization)
	return w
}

// When all ends are known, the large gang starts at the instant of its lease, to the second, and no earlier instant was
// reported. Earlier entities lease places when it does, so that its first place is not the best for long. Jobs that end
// by then pass, and others pass beside it.
func TestReservation_LargeGangStartsOnTime(t *testing.T) {
	scene := stream(t, exactly)
	w := watch(t, scene, direct.Options{}, large(&scene, "half", 64, largeComes))
	if w.own.Started != w.last || w.own.Started > w.own.Reserved || w.own.Started > w.longest {
		t.Errorf("it starts at %d, was told %d and last %d, the bound is %d",
			w.own.Started, w.own.Reserved, w.last, w.longest)
	}
	if w.passed-w.late < 100 || w.late < 100 {
		t.Error("nearly nobody passes")
	}
}

// The whole fleet is only free when the last of those has ended that ran when the gang became the first: that is the
// bound, to the second. No job that runs longer passes.
func TestReservation_WholeFleetStartsAtLastEnd(t *testing.T) {
	scene := stream(t, exactly)
	w := watch(t, scene, direct.Options{}, large(&scene, "all", 128, largeComes))
	if w.own.Started != w.longest || w.own.Reserved != w.longest {
		t.Errorf("it starts at %d, was told %d, want both %d", w.own.Started, w.own.Reserved, w.longest)
	}
	if w.passed < 100 || w.late != 0 {
		t.Errorf("%d pass, of these %d too long", w.passed, w.late)
	}
}

// Deadlines are up to twice a job's run time. The gang never starts later than reported.
func TestReservation_HoldsWithOverestimates(t *testing.T) {
	scene := stream(t, overestimated)
	w := watch(t, scene, direct.Options{}, large(&scene, "half", 64, largeComes))
	if w.own.Started > w.own.Reserved || w.own.Reserved > w.promised || w.passed == 0 {
		t.Errorf("it starts at %d, was told %d, the bound is %d", w.own.Started, w.own.Reserved, w.promised)
	}
}

// Every other job promises nothing. First the gang's start is unknown, and all are barred from its place. Then only
// jobs with a promise run there, and from now on it has an instant.
func TestReservation_HalfOfJobsHaveDeadlines(t *testing.T) {
	n := 0
	scene := stream(t, func(r *rand.Rand, runs int64) int64 {
		n++
		return overestimated(r, runs) * int64(n%2)
	})
	w := watch(t, scene, direct.Options{}, large(&scene, "half", 64, largeComes))
	if w.told == 0 || w.own.Started > w.told {
		t.Errorf("it starts at %d, was told %d", w.own.Started, w.told)
	}
}

// No end is known. The place is leased all the same, by guesses: no job that arrived later starts on its nodes, and the
// gang starts as soon as the units that ran there have ended.
func TestReservation_HoldsWithoutDeadlines(t *testing.T) {
	for _, nodes := range []int{64, 128} {
		scene := stream(t, unknownEnd)
		w := watch(t, scene, direct.Options{}, large(&scene, "large", nodes, largeComes))
		if !w.own.Guessed || w.own.Started != w.onPlace || w.within != 0 {
			t.Errorf("%d nodes: it starts at %d, its place is free at %d; %d slipped in",
				nodes, w.own.Started, w.onPlace, w.within)
		}
	}
}

// Without a reserved place it never starts, as long as the stream does not end.
func TestGreedy_StarvesTheLargeGang(t *testing.T) {
	scene := stream(t, overestimated)
	w := watch(t, scene, direct.Options{Discipline: direct.Greedy}, large(&scene, "half", 64, largeComes))
	if w.own.Started != direct.Never || w.own.Bypassed < 1000 {
		t.Errorf("it starts at %d, bypassed by %d", w.own.Started, w.own.Bypassed)
	}
}

// Two large gangs wait one behind the other. The second starts at the instant at which the first ends: none starts
// between them. Its lease has that instant when the first one runs; the first one's own end is no part of the second
// one's place before.
func TestReservation_TwoLargeGangsInTurn(t *testing.T) {
	scene := stream(t, exactly)
	first := large(&scene, "first", 128, largeComes)
	w := watch(t, scene, direct.Options{}, large(&scene, "second", 96, largeComes))
	if a := w.Jobs[first]; a.Started > a.Reserved || w.own.Started != a.Ended || w.last != a.Ended {
		t.Errorf("the first starts at %d (told %d) and ends at %d; the second starts at %d (told %d)",
			a.Started, a.Reserved, a.Ended, w.own.Started, w.last)
	}
}

// One in ten of the stream runs longer than declared. From the first that passed and is late, no other passes, so the
// gang starts when those have ended that ran by then. The place of a gang that needs half of the nodes moves only to
// one that is free by the instant that its lease named first, or the drained nodes would be given away each time.
func TestReservation_JobsOverrunDeadlines(t *testing.T) {
	const late = 150
	broken := func(r *rand.Rand, runs int64) int64 {
		if r.IntN(10) == 0 {
			return runs - late
		}
		return runs
	}
	for name, size := range map[string]int{"all": 128, "half": 64} {
		t.Run(name, func(t *testing.T) {
			scene := stream(t, broken)
			w := watch(t, scene, direct.Options{}, large(&scene, name, size, largeComes))
			if w.passed < 100 || w.own.Started > w.longest+late {
				t.Errorf(
					"%d pass; it starts at %d, the last of those before it ends at %d",
					w.passed,
					w.own.Started,
					w.longest,
				)
			}
		})
	}
}
