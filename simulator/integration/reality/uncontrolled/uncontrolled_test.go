package uncontrolled_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
	"github.com/lockstep-project/lockstep/simulator/integration/reality/uncontrolled"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
)

func machines(tb testing.TB) fleet.Fleet {
	tb.Helper()
	f, err := fleet.Open(uncontrolled.Fleet)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// player is an engine of the scheduler lockstep, by name.
func player(tb testing.TB, name string) engine.Engine {
	tb.Helper()
	s, err := schedulers.Open(schedulers.Ask{Name: schedulers.Lockstep, Engine: name}, clock.RealClock{})
	if err != nil {
		tb.Fatal(err)
	}
	return s.Engine
}

func played(
	t *testing.T, player engine.Engine, plan uncontrolled.Plan, startup uncontrolled.Startup,
) uncontrolled.Course {
	t.Helper()
	c, err := uncontrolled.Play(t.Context(), player, machines(t), plan, startup)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A plan is contended: gangs wait longer than they run, the fleet is in use, and of all wishes there are some.
func TestDraw_Contended(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		plan := uncontrolled.Draw(seed)
		if !reflect.DeepEqual(plan, uncontrolled.Draw(seed)) {
			t.Errorf("seed %d: two plans", seed)
		}
		var run time.Duration
		kinds := map[string]int{}
		for _, g := range plan.Gangs {
			run += g.RunTime / uncontrolled.Gangs
			for kind, is := range map[string]bool{
				"urgent": g.Priority > 0, "deadline": g.Deadline > 0, "one rack": g.Required, "several nodes": g.Members > 1,
				"part of a node": g.GPUs < 8,
			} {
				if is {
					kinds[kind]++
				}
			}
		}
		c := played(t, player(t, schedulers.Direct), plan, uncontrolled.Startup{}).Figures()
		t.Logf(
			"seed %d: waits %v, runs %v, in use %.1f %%, %d evictions, %v",
			seed,
			c.Waits,
			run,
			c.Utilization,
			c.Evictions,
			kinds,
		)
		if len(plan.Gangs) != 300 || c.Unfinished > 0 || c.Waits.Mean < run || c.Utilization < 80 ||
			len(kinds) < 5 {
			t.Errorf("seed %d: not what was wanted", seed)
		}
	}
}

// The shipped plugins in the stepped kube-scheduler treat a plan as the decision core does, evictions included: a
// replay has the same results with both engines.
func TestPlay_EnginesAgree(t *testing.T) {
	plan, startup := uncontrolled.Draw(1), uncontrolled.Startup{Gang: time.Second}
	direct := played(t, player(t, schedulers.Direct), plan, startup)
	stepped := played(t, player(t, schedulers.Kube), plan, startup)
	if !reflect.DeepEqual(direct, stepped) {
		c := uncontrolled.Compare(machines(t), direct, stepped)
		t.Errorf("%d of 300 on the same nodes, waits %s apart: %+v and %+v", c.SameNodes, c.Apart, c.Observed, c.Plain)
	}
}

// By hand: 8 of 16 GPUs for 100 s of a window of 300 s, then all 16 beyond its end; one eviction; waits of 10 and 30 s.
func TestObserved_ByHand(t *testing.T) {
	begin := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	stays := func(from, to, members int) []rerun.Stay {
		out := make([]rerun.Stay, members)
		for i := range out {
			out[i] = rerun.Stay{From: at(from), To: at(to)}
		}
		return out
	}
	plan := uncontrolled.Plan{Gangs: []rerun.Gang{
		{Name: "a", Members: 1, GPUs: 8, Submit: 10 * time.Second},
		{Name: "b", Members: 2, GPUs: 8, Submit: 170 * time.Second},
	}}
	c := uncontrolled.Observed(plan, begin, 16, []rerun.Run{
		{Gang: "a", First: at(20), Bound: at(20), Free: at(90), Stays: stays(20, 90, 1), Nodes: []string{"x"}},
		{
			Gang:    "a",
			Attempt: 1,
			First:   at(100),
			Bound:   at(100),
			Free:    at(130),
			Stays:   stays(100, 130, 1),
			Nodes:   []string{"y"},
		},
		{
			Gang:  "b",
			First: at(200),
			Bound: at(200),
			Free:  at(400),
			Stays: stays(200, 400, 2),
			Nodes: []string{"x", "y"},
		},
	})
	f := c.Figures()
	if want := 100 * (8*100 + 16*100.) / (16 * 300); math.Abs(f.Utilization-want) > 1e-9 || f.Evictions != 1 {
		t.Errorf("%.2f %% in use and %d evictions, want %.2f and 1", f.Utilization, f.Evictions, want)
	}
	if got, want := f.Waits, (uncontrolled.Times{Mean: 20 * time.Second, P95: 30 * time.Second}); got != want {
		t.Errorf("waits %v, want %v", got, want)
	}
	if got, want := f.Completions, (uncontrolled.Times{Mean: 175 * time.Second, P95: 230 * time.Second}); got != want {
		t.Errorf("completions %v, want %v", got, want)
	}
	if c.Fates[0].Nodes[0] != "x" {
		t.Error("the nodes are not those of the first start")
	}
}

// The time of a start is the median of the time that gangs held their nodes beyond the run time; the simulator's
// published time times the factor is as long.
func TestMeasure_ByHand(t *testing.T) {
	begin := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	gangs := []rerun.Gang{
		{Name: "a", Members: 1, RunTime: time.Second},
		{Name: "b", Members: 2, RunTime: time.Second},
		{Name: "c", Members: 2, RunTime: time.Second},
		{Name: "d", Members: 2, RunTime: time.Second},
	}
	startup := uncontrolled.Measure(gangs, begin, []rerun.Run{
		{Gang: "a", Whole: at(90), First: at(100), Free: at(1350)},
		{Gang: "b", Whole: at(180), First: at(200), Free: at(2200)},
		{Gang: "c", Whole: at(270), First: at(300), Free: at(9300)},
		{Gang: "d", Whole: at(270), First: at(300), Free: at(2299)},
	})
	want := uncontrolled.Startup{
		Single:  250 * time.Millisecond,
		Gang:    time.Second,
		Arrival: 300 * time.Millisecond,
		Binding: 30 * time.Millisecond,
	}
	if startup != want || startup.Handover() != 80*time.Millisecond || startup.Factor(4) != 250 {
		t.Errorf(
			"%+v and a factor of %d, want %+v and 250, for 1 s of 4",
			startup,
			startup.Factor(4),
			want,
		)
	}
}

// The simulator's seconds are whole.
func TestFactor_LessThanHalfASecondIsNone(t *testing.T) {
	for took, want := range map[time.Duration]int64{
		0: 0, 499 * time.Millisecond: 0, 500 * time.Millisecond: 125, 6 * time.Second: 1500,
	} {
		if got := (uncontrolled.Startup{Gang: took}).Factor(4); got != want {
			t.Errorf("%s: %d, want %d", took, got, want)
		}
	}
}

// GPUs of a gang are counted from its binding: of 300 gangs that start in time each loses the hand-over, unless it
// starts or ends beyond the window.
func TestPlay_CountsFromTheBinding(t *testing.T) {
	plan := uncontrolled.Plan{Gangs: []rerun.Gang{{Name: "a", Members: 2, GPUs: 8, RunTime: 100 * time.Second}}}
	at, late := played(t, player(t, schedulers.Direct), plan, uncontrolled.Startup{}),
		played(t, player(t, schedulers.Direct), plan, uncontrolled.Startup{Binding: 200 * time.Millisecond})
	if at.Held != 1600 || math.Abs(late.Held-(1600-16*0.25)) > 1e-6 {
		t.Errorf("%.2f and %.2f GPU-seconds, want 1600 and 1596", at.Held, late.Held)
	}
}

// The prediction is within the bounds of a run like the mean of the replays, and out of those of one in which all wait
// longer on an emptier fleet. A single replay is no such run: the utilizations of two differ by more than a point.
func TestMissing_SaysWhatDiffers(t *testing.T) {
	plan := uncontrolled.Draw(2)
	course := played(t, player(t, schedulers.Direct), plan, uncontrolled.Startup{})
	c := uncontrolled.Compare(machines(t), course, course)
	spread, err := uncontrolled.Predict(
		t.Context(),
		player(t, schedulers.Direct),
		machines(t),
		plan,
		uncontrolled.Startup{},
	)
	if err != nil {
		t.Fatal(err)
	}
	c.Spread, c.Observed = spread, mean(spread)
	if missing := c.Missing(); len(missing) > 0 || c.SameNodes != 300 || c.SameDomains != 300 || c.Apart != 0 {
		t.Errorf("%v, %d and %d of 300, %v apart", missing, c.SameNodes, c.SameDomains, c.Apart)
	}
	t.Log("\n" + uncontrolled.Table([]uncontrolled.Comparison{c}))
	c.Observed.Waits.Mean, c.Observed.Waits.P95 = 2*c.Observed.Waits.Mean, 2*c.Observed.Waits.P95
	c.Observed.Utilization -= 3
	missing := strings.Join(c.Missing(), "\n")
	for _, want := range []string{"mean wait differs by -", "p95 wait differs by -", "utilization differs by +"} {
		if !strings.Contains(missing, want) {
			t.Errorf("%q is not said in %q", want, missing)
		}
	}
}

// mean returns the means of the figures that are compared.
func mean(all []uncontrolled.Figures) (out uncontrolled.Figures) {
	n := len(all)
	for _, f := range all {
		for _, of := range []struct{ to, from *uncontrolled.Times }{
			{&out.Waits, &f.Waits}, {&out.Completions, &f.Completions},
		} {
			of.to.Mean += of.from.Mean / time.Duration(n)
			of.to.P95 += of.from.P95 / time.Duration(n)
		}
		out.Utilization += f.Utilization / float64(n)
	}
	return out
}
