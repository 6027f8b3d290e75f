package direct_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/topology"
)

// Every scene is two nodes, and its events are listed in full.
func TestEngine_TwoNodeScenes(t *testing.T) {
	backfill := direct.Options{Discipline: direct.Backfill}
	for name, c := range map[string]struct {
		options direct.Options
		jobs    []direct.Job
		want    string
	}{
		"who is short passes, who is long waits": {backfill, []direct.Job{
			promised(job("runs", 1, 8, 0, 50), 100),
			job("large", 2, 8, 1, 10),
			promised(job("long", 1, 8, 2, 5), 99),
			promised(job("short", 1, 8, 3, 20), 97),
		}, `
			0 runs arrived
			0 runs started [0]
			1 large arrived
			1 large kept [0 1] from 100
			1 large refused
			2 long arrived
			2 long refused
			3 short arrived
			3 short started [1]
			23 short ended
			50 runs ended
			50 large started [0 1]
			50 long kept [0] by a guess
			60 large ended
			60 long started [0]
			65 long ended`},
		"of whom nobody knows the end waits": {backfill, []direct.Job{
			promised(job("runs", 1, 8, 0, 50), 100),
			job("large", 2, 8, 1, 10),
			job("unknown", 1, 1, 2, 1),
		}, `
			0 runs arrived
			0 runs started [0]
			1 large arrived
			1 large kept [0 1] from 100
			1 large refused
			2 unknown arrived
			2 unknown refused
			50 runs ended
			50 large started [0 1]
			50 unknown kept [0] by a guess
			60 large ended
			60 unknown started [0]
			61 unknown ended`},
		"strictly nobody passes": {direct.Options{Discipline: direct.Strict}, []direct.Job{
			promised(job("runs", 1, 8, 0, 50), 100),
			job("large", 2, 8, 1, 10),
			promised(job("short", 1, 8, 3, 20), 20),
		}, `
			0 runs arrived
			0 runs started [0]
			1 large arrived
			1 large kept [0 1] from 100
			1 large refused
			3 short arrived
			3 short refused
			50 runs ended
			50 large started [0 1]
			50 short kept [0] by a guess
			60 large ended
			60 short started [0]
			80 short ended`},
		"whom nobody's end helps is in nobody's way": {direct.Options{Discipline: direct.Strict}, []direct.Job{
			job("hopeless", 3, 8, 0, 1),
			job("small", 1, 1, 1, 5),
		}, `
			0 hopeless arrived
			0 hopeless refused
			1 small arrived
			1 small started [0]
			6 small ended`},
		"a missed end is a guess, which who ends in time passes": {backfill, []direct.Job{
			promised(job("late", 1, 8, 0, 70), 10),
			promised(job("next", 1, 8, 0, 40), 40),
			job("large", 2, 8, 1, 10),
			promised(job("small", 1, 1, 41, 1), 1),
		}, `
			0 late arrived
			0 next arrived
			0 late started [0]
			0 next started [1]
			1 large arrived
			1 large kept [0 1] from 40
			1 large refused
			40 next ended
			40 large kept [0 1] by a guess
			41 small arrived
			41 small started [1]
			42 small ended
			70 late ended
			70 large started [0 1]
			80 large ended`},
		"the more important has the place, and the next has it after that": {backfill, []direct.Job{
			promised(job("runs", 2, 8, 0, 10), 10),
			job("first", 2, 8, 1, 5),
			important(promised(job("better", 2, 8, 2, 5), 5), 1),
		}, `
			0 runs arrived
			0 runs started [0 1]
			1 first arrived
			1 first kept [0 1] from 10
			1 first refused
			2 better arrived
			2 better kept [0 1] from 10
			2 better refused
			10 runs ended
			10 better started [0 1]
			10 first kept [0 1] from 15
			15 better ended
			15 first started [0 1]
			20 first ended`},
		"who loses least is preempted, and goes on later": {direct.Options{Preempt: true}, []direct.Job{
			yielding(job("dear", 1, 8, 0, 100), 0),
			yielding(job("cheap", 1, 8, 0, 100), 20),
			important(job("urgent", 1, 8, 50, 5), 1),
		}, `
			0 cheap arrived
			0 dear arrived
			0 cheap started [0]
			0 dear started [1]
			50 urgent arrived
			50 cheap preempted
			50 urgent started [0]
			50 cheap kept [0] by a guess
			50 cheap refused
			55 urgent ended
			55 cheap started [0]
			100 dear ended
			115 cheap ended`},
		"a victim runs until its grace is over": {direct.Options{Preempt: true, Until: 80}, []direct.Job{
			yielding(job("low", 2, 8, 0, 100), 25),
			important(job("urgent", 1, 8, 40, 5), 1),
		}, `
			0 low arrived
			0 low started [0 1]
			40 urgent arrived
			40 low evicted
			40 urgent refused
			70 low preempted
			70 urgent started [0]
			70 low kept [0 1] by a guess
			70 low refused
			75 urgent ended
			75 low started [0 1]`},
		"a victim that ends before its grace is over has ended": {direct.Options{Preempt: true}, []direct.Job{
			yielding(job("low", 2, 8, 0, 100), 0),
			important(job("urgent", 1, 8, 80, 5), 1),
		}, `
			0 low arrived
			0 low started [0 1]
			80 urgent arrived
			80 low evicted
			80 urgent refused
			100 low ended
			100 urgent started [0]
			105 urgent ended`},
		"equals are not preempted": {direct.Options{Preempt: true, Until: 60}, []direct.Job{
			yielding(job("runs", 2, 8, 0, 100), 0),
			job("equal", 1, 8, 50, 5),
		}, `
			0 runs arrived
			0 runs started [0 1]
			50 equal arrived
			50 equal kept [0] by a guess
			50 equal refused`},
	} {
		t.Run(name, func(t *testing.T) {
			scene := fleet(t, 2, 2)
			scene.Jobs = c.jobs
			for i := range scene.Jobs {
				if scene.Jobs[i].Name == "low" {
					scene.Jobs[i].Grace = 30
				}
			}
			want := strings.TrimSpace(strings.ReplaceAll(c.want, "\t", ""))
			if got := play(t, scene, c.options).String(); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// yielding lets a job be preempted; it saves its work every so many seconds, 0 for never.
func yielding(j direct.Job, saves int64) direct.Job {
	j.Preemptible, j.Saves = true, saves
	return j
}

// A unit that runs from the beginning ends at its actual end, which schedulers do not know.
func TestEngine_RunningUnitsEndAtActualEnd(t *testing.T) {
	scene := fleet(t, 2, 2)
	scene.Now = 1000
	scene.Ledger.Free = []topology.Capacity{{0}, {4}}
	held := func(node int, gpus int64) []topology.Held {
		return []topology.Held{{Node: node, Demand: topology.Capacity{gpus}}}
	}
	scene.Running = []direct.Running{
		{
			Name:     "service",
			Holds:    held(1, 4),
			Expected: contention.End{Certainty: contention.Never},
			Ends:     direct.Forever,
		},
		{
			Name:     "training",
			Holds:    held(0, 8),
			Expected: contention.End{At: 1100, Certainty: contention.Certain},
			Ends:     1050,
		},
	}
	scene.Jobs = []direct.Job{job("waits", 1, 8, 900, 10)}
	got := play(t, scene, direct.Options{})
	want := "1000 waits arrived\n1000 waits kept [0] from 1100\n1000 waits refused\n" +
		"1050 training ended\n1050 waits started [0]\n1060 waits ended"
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if o := got.Jobs[0]; o.Waited != 150 || o.Reserved != 1100 || got.Reservations.Mean != 50 ||
		got.Utilization != 0.75 {
		t.Errorf("waited %d, reserved for %d, error %g, in use %g; want 150, 1100, 50 and 12 of 16",
			o.Waited, o.Reserved, got.Reservations.Mean, got.Utilization)
	}
	scene.Running[1].Ends = 1100
	if o := play(t, scene, direct.Options{}).Jobs[0]; o.Started != 1100 {
		t.Errorf("it starts at %d although all ends as expected", o.Started)
	}
	if scene.Ledger.Free[0][0] != 0 {
		t.Error("the caller's ledger was changed")
	}
}

func TestEngine_RefusesWrongScenes(t *testing.T) {
	for name, spoil := range map[string]func(*direct.Scene){
		"no fleet": func(s *direct.Scene) { s.Ledger = topology.Ledger{} },
		"a node too many": func(s *direct.Scene) {
			s.Running = []direct.Running{{Holds: []topology.Held{{Node: 7}}}}
		},
		"a name twice":        func(s *direct.Scene) { s.Jobs = []direct.Job{job("a", 1, 1, 0, 1), job("a", 1, 1, 0, 1)} },
		"a minimum too large": func(s *direct.Scene) { s.Jobs = []direct.Job{elastic(job("a", 1, 1, 0, 1), 2)} },
		"a negative grace": func(s *direct.Scene) {
			j := job("slow", 1, 1, 0, 1)
			j.Grace = -1
			s.Jobs = []direct.Job{j}
		},
		"a negative time": func(s *direct.Scene) { s.Jobs = []direct.Job{job("back", 1, 1, 0, -1)} },
	} {
		t.Run(name, func(t *testing.T) {
			scene := fleet(t, 2, 2)
			spoil(&scene)
			if _, err := direct.Run(scene, direct.Options{}, nil); !errors.Is(err, direct.ErrScene) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// An elastic gang starts with three of its four members. The fourth waits in the gang's place in the queue, behind a
// gang of higher priority and before a later one, and joins the others. It ends with them; preempted, the gang waits
// whole. The lease of the later one rests on a guess, as that of the surplus does from 60 on: it is open until the
// surplus has ended.
func TestElasticGang_SurplusJoinsLater(t *testing.T) {
	scene := fleet(t, 4, 4)
	scene.Jobs = []direct.Job{
		promised(job("runs", 1, 8, 0, 50), 50),
		yielding(elastic(job("grows", 4, 8, 1, 100), 2), 0),
		job("later", 1, 8, 2, 10),
		important(job("urgent", 1, 8, 60, 20), 1),
	}
	want := strings.TrimSpace(strings.ReplaceAll(`
		0 runs arrived
		0 runs started [0]
		1 grows arrived
		1 grows started [1 2 3]
		1 grows kept [0] from 50
		2 later arrived
		2 later kept [1] by a guess
		2 later refused
		50 runs ended
		50 grows joined [1 2 3 0]
		60 urgent arrived
		60 grows preempted
		60 urgent started [0]
		60 grows started [1 2 3]
		60 grows kept [0] by a guess
		80 urgent ended
		80 grows joined [1 2 3 0]
		80 later kept [0] by a guess
		160 grows ended
		160 later started [0]
		170 later ended`, "\t", ""))
	if got := play(t, scene, direct.Options{Preempt: true}).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// No member joins an elastic gang that leaves: its lease ends with its eviction.
func TestElasticGang_EvictedTakesNoMember(t *testing.T) {
	scene := fleet(t, 3, 3)
	grows := yielding(elastic(job("grows", 3, 8, 1, 100), 1), 0)
	grows.Grace = 30
	scene.Jobs = []direct.Job{
		promised(job("runs", 1, 8, 0, 50), 50), grows, important(job("urgent", 2, 8, 40, 20), 1),
	}
	want := strings.TrimSpace(strings.ReplaceAll(`
		0 runs arrived
		0 runs started [0]
		1 grows arrived
		1 grows started [1 2]
		1 grows kept [0] from 50
		40 urgent arrived
		40 grows evicted
		40 urgent refused
		50 runs ended
		70 grows preempted
		70 urgent started [0 1]
		70 grows started [2]
		70 grows kept [0] by a guess
		90 urgent ended
		90 grows joined [2 0 1]
		170 grows ended`, "\t", ""))
	if got := play(t, scene, direct.Options{Preempt: true}).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A node of the first one's place fails. When it is not back after the grace there is no place for the first one any
// more, and those that it held up start.
func TestStrict_LiftedWhenNoPlaceIsLeft(t *testing.T) {
	scene := fleet(t, 3, 3)
	scene.Jobs = []direct.Job{
		promised(job("runs", 1, 8, 0, 1000), 1000), job("large", 3, 8, 1, 10), job("small", 1, 8, 2, 10),
	}
	scene.Events = []direct.SceneEvent{{At: 10, Kind: direct.NodesFailed, Nodes: []int{1}}}
	want := strings.TrimSpace(strings.ReplaceAll(`
		0 runs arrived
		0 runs started [0]
		1 large arrived
		1 large kept [0 1 2] from 1000
		1 large refused
		2 small arrived
		2 small refused
		10  nodes-failed
		310 small started [2]
		320 small ended
		1000 runs ended`, "\t", ""))
	if got := play(t, scene, direct.Options{Discipline: direct.Strict}).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
