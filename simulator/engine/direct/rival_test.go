package direct_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

const hours = 3600

// Slurm, by hand. Nodes are whole; "first" runs until 100 on node 0.
func TestWindow(t *testing.T) {
	slurm := direct.Options{Discipline: direct.Window, Policy: firstFit{}}
	for name, c := range map[string]struct {
		nodes int
		jobs  []scenario.Job
		want  string
	}{
		// "two" has a place from 120 (ends are rounded up to a minute) to 180, "three" from 180. With one reservation
		// "late" could start at once, since it needs nothing of "two"; it would delay "three". The first cycle with two
		// jobs is at 41, the next at 71.
		"every job that waits has a place": {3, []scenario.Job{
			comes("first", 1, 0, 100, 100), comes("two", 3, 40, 60, 60), comes("three", 3, 41, 60, 60),
			comes("late", 1, 42, 70, 70), comes("early", 1, 43, 30, 30),
		}, `
			0 first submitted
			0 first started [0]
			40 two submitted
			40 two refused
			41 three submitted
			41 three refused
			42 late submitted
			42 late refused
			43 early submitted
			43 early refused
			71 early started [1]
			100 first ended
			101 early ended
			101 two started [0 1 2]
			161 two ended
			161 three started [0 1 2]
			221 three ended
			221 late started [0]
			291 late ended`},
		// The end of "endless" is not known, so "all" has no place inside the window, and delays no other.
		"a job that cannot start inside the window delays no other": {2, []scenario.Job{
			comes("endless", 1, 0, 100*hours, 0), comes("all", 2, 60, 10, 10), comes("small", 1, 120, 10*hours, 0),
		}, `
			0 endless submitted
			0 endless started [0]
			60 all submitted
			60 all refused
			120 small submitted
			120 small started [1]
			36120 small ended
			360000 endless ended
			360000 all started [0 1]
			360010 all ended`},
		"an end beyond the window is as good as none": {2, []scenario.Job{
			comes("long", 1, 0, 25*hours, 25*hours), comes("all", 2, 60, 10, 10), comes("small", 1, 120, 24*hours, 24*hours),
		}, `
			0 long submitted
			0 long started [0]
			60 all submitted
			60 all refused
			120 small submitted
			120 small started [1]
			86520 small ended
			90000 long ended
			90000 all started [0 1]
			90010 all ended`},
		"the main scheduler starts nothing behind the first that waits": {2, []scenario.Job{
			comes("first", 1, 0, 100, 100), comes("all", 2, 1, 10, 10), comes("long", 1, 2, 500, 500),
		}, `
			0 first submitted
			0 first started [0]
			1 all submitted
			1 all refused
			2 long submitted
			2 long refused
			100 first ended
			100 all started [0 1]
			110 all ended
			110 long started [0]
			610 long ended`},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, whole(t, c.nodes, c.jobs...), slurm).wants(t, c.want)
		})
	}
}

// low is a job that may be preempted, high one of a higher priority.
func low(id string, nodes, submit int) scenario.Job {
	j := comes(id, nodes, submit, 1000, 0)
	j.Preemptible = true
	return j
}

func high(id string, nodes, submit int) scenario.Job {
	j := comes(id, nodes, submit, 10, 0)
	j.Priority = 5
	return j
}

// Kueue, by hand: nodes 0 to 3 are those of a, b, c and d in this order, as firstFit has them.
func TestEvicting(t *testing.T) {
	kueue := direct.Options{Discipline: direct.Evicting, Policy: firstFit{}}
	for name, c := range map[string]struct {
		nodes int
		jobs  []scenario.Job
		want  string
	}{
		"the latest start is evicted first": {2, []scenario.Job{
			low("a", 1, 0), low("b", 1, 1), high("h", 1, 2),
		}, `
			0 a submitted
			0 a started [0]
			1 b submitted
			1 b started [1]
			2 h submitted
			2 b preempted
			2 h started [1]
			2 b refused
			12 h ended
			12 b started [1]
			1000 a ended
			1012 b ended`},
		// c and b are taken away until two nodes are free. b alone is enough, so c is put back.
		"whoever can stay is put back": {4, []scenario.Job{
			low("a", 1, 0), low("b", 2, 1), low("c", 1, 2), high("h", 2, 3),
		}, `
			0 a submitted
			0 a started [0]
			1 b submitted
			1 b started [1 2]
			2 c submitted
			2 c started [3]
			3 h submitted
			3 b preempted
			3 h started [1 2]
			3 b refused
			13 h ended
			13 b started [1 2]
			1000 a ended
			1002 c ended
			1013 b ended`},
		"no victim is evicted without result": {2, []scenario.Job{
			comes("fixed", 1, 0, 100, 0), low("b", 1, 1), high("h", 2, 2),
		}, `
			0 fixed submitted
			0 fixed started [0]
			1 b submitted
			1 b started [1]
			2 h submitted
			2 h refused
			100 fixed ended
			100 b preempted
			100 h started [0 1]
			100 b refused
			110 h ended
			110 b started [0]
			1110 b ended`},
		"equals are not evicted": {1, []scenario.Job{low("a", 1, 0), low("b", 1, 1)}, `
			0 a submitted
			0 a started [0]
			1 b submitted
			1 b refused
			1000 a ended
			1000 b started [0]
			2000 b ended`},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, whole(t, c.nodes, c.jobs...), kueue).wants(t, c.want)
		})
	}
}

// While a victim leaves, no job behind the preemptor takes the capacity that is free for it.
func TestEvicting_WaitsForVictims(t *testing.T) {
	b := low("b", 1, 0)
	b.Grace = seconds(30)
	perform(t, whole(t, 2, b, high("h", 2, 5), comes("small", 1, 6, 10, 0)),
		direct.Options{Discipline: direct.Evicting, Policy: firstFit{}}).wants(t, `
		0 b submitted
		0 b started [0]
		5 h submitted
		5 b evicted
		5 h refused
		6 small submitted
		6 small refused
		35 b preempted
		35 h started [0 1]
		35 b refused
		45 h ended
		45 b started [0]
		45 small started [1]
		55 small ended
		1045 b ended`)
}
