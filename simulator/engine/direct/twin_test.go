package direct_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/topology"
)

// twin plays scenes in the dumbest way: at every instant at which something happens it asks everybody again, and it keeps
// nothing between two instants but who runs and who waits.
type twin struct {
	scene   direct.Scene
	options direct.Options
	now     int64
	waiting []int
	runs    []*twinRun
	left    []int64
	head    int
	kept    *topology.Reservation
	moved   bool
	lines   []string
}

type twinRun struct {
	job                   int
	start, ends, expected int64
	holds                 []topology.Held
}

func (w *twin) say(e direct.Event, i int) {
	e.At, e.Job, e.Name = w.now, i, w.scene.Jobs[i].Name
	w.lines = append(w.lines, line(e))
}

func (w *twin) play() string {
	w.head = -1
	arrivals := make([]int, len(w.scene.Jobs))
	for i, j := range w.scene.Jobs {
		arrivals[i], w.left = i, append(w.left, j.Runs)
	}
	slices.SortFunc(arrivals, func(a, b int) int {
		return cmp.Or(cmp.Compare(w.scene.Jobs[a].Arrives, w.scene.Jobs[b].Arrives), w.compare(a, b))
	})
	for {
		w.now = direct.Forever
		for _, r := range w.runs {
			w.now = min(w.now, r.ends)
		}
		if len(arrivals) > 0 {
			w.now = min(w.now, w.scene.Jobs[arrivals[0]].Arrives)
		}
		if w.now == direct.Forever {
			return strings.Join(w.lines, "\n")
		}
		running := len(w.runs)
		w.runs = slices.DeleteFunc(w.runs, func(r *twinRun) bool {
			if r.ends == w.now {
				w.say(direct.Event{Kind: direct.Ended}, r.job)
			}
			return r.ends == w.now
		})
		var came []int
		for len(arrivals) > 0 && w.scene.Jobs[arrivals[0]].Arrives == w.now {
			came = append(came, arrivals[0])
			w.say(direct.Event{Kind: direct.Arrived}, arrivals[0])
			arrivals = arrivals[1:]
		}
		w.waiting = append(w.waiting, came...)
		w.decide(came, len(w.runs) < running)
	}
}

func (w *twin) compare(a, b int) int { return w.scene.Jobs[a].Order.Compare(w.scene.Jobs[b].Order) }

func (w *twin) ledger() topology.Ledger {
	l := w.scene.Ledger
	l.Free = nil
	for _, free := range w.scene.Ledger.Free {
		l.Free = append(l.Free, slices.Clone(free))
	}
	for _, r := range w.runs {
		for _, h := range r.holds {
			for resource, amount := range h.Demand {
				l.Free[h.Node][resource] -= amount
			}
		}
	}
	return l
}

func (w *twin) running() []topology.Running {
	var all []topology.Running
	for _, r := range w.runs {
		all = append(all, topology.Running{Name: w.scene.Jobs[r.job].Name, Holds: r.holds, End: r.expected})
	}
	return all
}

func (w *twin) ask(i int) decision.Ask {
	j := w.scene.Jobs[i]
	ask := decision.Ask{Gang: j.Gang, Needed: j.Needed, End: topology.EndUnknown}
	if j.Promises > 0 {
		ask.End = w.now + j.Promises
	}
	return ask
}

// decide asks everybody until a whole round let nobody pass, preempted nobody, and left the place that is kept where it was. The place is looked
// for anew if something ended, or if who came is before the one for whom it is kept.
func (w *twin) decide(came []int, ended bool) {
	head, before := w.head, topology.Reservation{}
	if w.kept != nil {
		before = *w.kept
	}
	first := w.head < 0 || slices.ContainsFunc(came, func(i int) bool { return w.compare(i, w.head) < 0 })
	for anew := ended || first; ; {
		if anew {
			w.head, w.kept = -1, nil
		}
		victims := w.round()
		came, anew = append(came, victims...), len(victims) > 0
		if !anew && !w.moved {
			break
		}
	}
	if w.kept != nil && (before.At != w.kept.At || w.head != head ||
		!slices.Equal(before.Placement.Nodes, w.kept.Placement.Nodes)) {
		w.say(direct.Event{
			Kind: direct.Kept, Placement: w.kept.Placement, Reserved: max(w.kept.At, w.now),
		}, w.head)
	}
	slices.SortFunc(came, w.compare)
	for _, i := range came {
		if slices.Contains(w.waiting, i) {
			w.say(direct.Event{Kind: direct.Refused}, i)
		}
	}
}

func (w *twin) round() (victims []int) {
	w.moved = false
	slices.SortFunc(w.waiting, w.compare)
	for _, i := range slices.Clone(w.waiting) {
		switch {
		case i == w.head:
		case w.kept != nil && w.compare(i, w.head) > 0:
			w.follow(i)
		default:
			if victims = w.lead(i); victims != nil {
				return victims
			}
		}
	}
	return nil
}

func (w *twin) follow(i int) {
	if w.options.Discipline == direct.Strict {
		return
	}
	nodes := slices.Clone(w.kept.Placement.Nodes)
	turn := decision.Turn{
		Head:    w.ask(w.head),
		Keeps:   func(node int) bool { return slices.Contains(nodes, node) },
		Running: w.running,
	}
	answer, anew := turn.Behind(w.ledger(), w.ask(i))
	if anew != nil {
		w.kept = anew
		w.moved = w.moved || !slices.Equal(nodes, anew.Placement.Nodes)
	}
	if answer.Refusal == nil {
		w.start(i, answer)
		w.moved = true
	}
}

func (w *twin) lead(i int) (victims []int) {
	answer := decision.Place(w.ledger(), w.ask(i))
	if answer.Refusal == nil {
		w.start(i, answer)
		return nil
	}
	if w.options.Preempt {
		if victims = w.preempt(i, answer.Gang); victims != nil {
			return victims
		}
	}
	if w.options.Discipline != direct.Greedy && w.kept == nil {
		if w.kept = decision.Keep(w.ledger(), w.running(), w.ask(i)); w.kept != nil {
			w.head = i
		}
	}
	return nil
}

func (w *twin) start(i int, answer decision.Answer) {
	j := w.scene.Jobs[i]
	r := &twinRun{job: i, start: w.now, ends: w.now + w.left[i], expected: decision.Someday}
	if j.Promises > 0 {
		r.expected = w.now + j.Promises
	}
	for rank, node := range answer.Placement.Nodes {
		shape := answer.Gang.Shapes[answer.Gang.Members[rank].Shape]
		r.holds = append(r.holds, topology.Held{Node: node, Demand: shape.Demand})
	}
	w.runs = append(w.runs, r)
	w.waiting = slices.DeleteFunc(w.waiting, func(o int) bool { return o == i })
	w.say(direct.Event{Kind: direct.Started, Placement: answer.Placement}, i)
}

func (w *twin) preempt(i int, gang topology.Gang) (victims []int) {
	var less []*twinRun
	var costs []topology.Running
	runs := slices.Clone(w.runs)
	// Of those that lose the same the least important leaves, then the first by name.
	slices.SortFunc(runs, func(a, b *twinRun) int {
		x, y := w.scene.Jobs[a.job], w.scene.Jobs[b.job]
		return cmp.Or(cmp.Compare(x.Order.Priority, y.Order.Priority), strings.Compare(x.Name, y.Name))
	})
	for _, r := range runs {
		other := w.scene.Jobs[r.job]
		if !other.Preemptible || other.Order.Priority >= w.scene.Jobs[i].Order.Priority {
			continue
		}
		unsaved := w.now - r.start
		if other.Saves > 0 {
			unsaved %= other.Saves
		}
		less = append(less, r)
		costs = append(costs, topology.Running{Holds: r.holds, Cost: unsaved * other.Accelerators})
	}
	eviction, short, err := topology.Evict(w.ledger(), gang, costs)
	if short != nil || err != nil {
		return nil
	}
	for _, v := range eviction.Victims {
		r := less[v]
		if saves := w.scene.Jobs[r.job].Saves; saves > 0 {
			w.left[r.job] -= (w.now - r.start) / saves * saves
		}
		w.runs = slices.DeleteFunc(w.runs, func(o *twinRun) bool { return o == r })
		w.waiting = append(w.waiting, r.job)
		victims = append(victims, r.job)
		w.say(direct.Event{Kind: direct.Preempted}, r.job)
	}
	w.start(i, decision.Place(w.ledger(), w.ask(i)))
	return victims
}

// randomScene is up to eight nodes and thirty jobs, most of them small, some with promises, of which some are broken.
func randomScene(t *testing.T, r *rand.Rand) direct.Scene {
	t.Helper()
	scene := fleet(t, 3+r.IntN(6), 2)
	for n := range 10 + r.IntN(20) {
		runs := int64(1 + r.IntN(40))
		j := job(fmt.Sprintf("j%02d", n), 1+r.IntN(1+n%6), int64(1+r.IntN(8)), int64(r.IntN(100)), runs)
		if r.IntN(3) > 0 {
			j = promised(j, max(1, runs*int64(80+r.IntN(200))/100))
		}
		if r.IntN(4) == 0 {
			j = important(j, int32(r.IntN(3)))
		}
		if r.IntN(4) == 0 {
			j.Gang.Required = "rack"
		}
		if r.IntN(8) == 0 {
			j.Needed = (j.Needed + 1) / 2
		}
		if r.IntN(2) == 0 {
			j = yielding(j, int64(r.IntN(10)))
		}
		scene.Jobs = append(scene.Jobs, j)
	}
	return scene
}

func TestAgainstATwin(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		scene := randomScene(t, r)
		for _, discipline := range []direct.Discipline{direct.Backfill, direct.Strict, direct.Greedy} {
			options := direct.Options{Discipline: discipline, Preempt: r.IntN(2) == 0}
			w := twin{scene: scene, options: options}
			got, want := play(t, scene, options), w.play()
			if got.String() != want {
				t.Fatalf("seed %d, %v:\n%s", seed, options, difference(got.lines, w.lines))
			}
			for _, l := range got.lines {
				kinds[strings.Fields(l)[2]]++
			}
		}
	}
	t.Log(kinds)
	for _, kind := range []direct.Kind{direct.Started, direct.Refused, direct.Kept, direct.Preempted} {
		if kinds[kind.String()] < 100 {
			t.Errorf("%s happens %d times: the scenes are too easy", kind, kinds[kind.String()])
		}
	}
}

// difference shows where two stories part.
func difference(got, want []string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	part := func(lines []string) string { return strings.Join(lines[max(at-5, 0):min(at+5, len(lines))], "\n") }
	return "got …\n" + part(got) + "\nwant …\n" + part(want)
}
