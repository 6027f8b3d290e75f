package rerun_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
)

func machines(t *testing.T) fleet.Fleet {
	t.Helper()
	f, err := fleet.Open("gb200-72")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func player(t *testing.T) engine.Engine {
	t.Helper()
	s, err := schedulers.Open(schedulers.Ask{Name: schedulers.Lockstep, Nodes: 74}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Engine
}

func TestDraw_SeedIsAPlan(t *testing.T) {
	for _, kind := range rerun.Kinds() {
		plan := rerun.Draw(kind, 3)
		if !reflect.DeepEqual(plan, rerun.Draw(kind, 3)) {
			t.Errorf("%s: one seed, two plans", kind)
		}
		if reflect.DeepEqual(plan.Gangs, rerun.Draw(kind, 4).Gangs) {
			t.Errorf("%s: two seeds, one plan", kind)
		}
		for _, g := range plan.Gangs {
			if g.Members < 1 || g.Members > 18 || g.GPUs < 1 || g.GPUs > 4 || g.RunTime < time.Second {
				t.Errorf("%s: %+v", kind, g)
			}
		}
	}
}

// What happens within a quantum of a record happens at once in its scene, and that lasts inScene times as long.
const (
	quantum = 100 * time.Millisecond
	inScene = 10
)

// told holds an engine's reports of starts.
type told struct {
	scene *scenario.Scenario
	at    map[string]time.Duration
	nodes map[string][]string
}

func (w *told) Happens(e engine.Event) {
	if e.Kind == engine.Started {
		job := w.scene.Jobs[e.Job]
		w.at[job.ID] = e.At / inScene
		for _, node := range e.Nodes {
			w.nodes[job.ID] = append(w.nodes[job.ID], w.scene.Ledger.Tree.Node(node))
		}
	}
}

func (*told) Decides(engine.Decision) {}

// perfect is a record of a burst by a cluster that does as the simulator does, but takes a while for everything.
func perfect(t *testing.T, machines fleet.Fleet) rerun.Record {
	t.Helper()
	const making, binding = quantum, 20 * time.Millisecond
	plan := rerun.Draw(rerun.Burst, 1)
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	record := rerun.Record{Plan: plan, Begin: begin}
	for i, g := range plan.Gangs {
		asked := begin.Add(time.Duration(i) * quantum)
		record.Asked = append(record.Asked, asked)
		record.Queued = append(record.Queued, asked.Truncate(time.Second))
		record.Runs = append(record.Runs, rerun.Run{Gang: g.Name, Whole: asked.Add(making)})
	}
	waited := make(map[string]bool)
	var seen *told
	for range 2 { // the first shows which gangs wait
		s, err := rerun.Scene(machines, record, waited, rerun.Delays{Fresh: binding, Waited: binding + rerun.Gather})
		if err != nil {
			t.Fatal(err)
		}
		seen = &told{s, make(map[string]time.Duration), make(map[string][]string)}
		if err := player(t).Run(t.Context(), s, seen); err != nil {
			t.Fatal(err)
		}
		for _, j := range s.Jobs {
			waited[j.ID] = seen.at[j.ID] > j.Submit/inScene
		}
	}
	for i := range record.Runs {
		run := &record.Runs[i]
		delay := binding
		if waited[run.Gang] {
			delay += rerun.Gather
		}
		run.Nodes = seen.nodes[run.Gang]
		run.First = begin.Add(seen.at[run.Gang] + delay)
		run.Bound = run.First.Add(5 * time.Millisecond)
		run.Ending = run.First.Add(plan.Gangs[i].RunTime)
		run.Free = run.Ending
	}
	return record
}

func compared(t *testing.T, machines fleet.Fleet, record rerun.Record) rerun.Comparison {
	t.Helper()
	out, err := rerun.Play(t.Context(), player(t), machines, record)
	if err != nil {
		t.Fatal(err)
	}
	return rerun.Compare(out)
}

// A cluster that decides as the simulator does differs from it in nothing but delays.
func TestPlay_PerfectCopyHasOnlyDelays(t *testing.T) {
	fleet := machines(t)
	c := compared(t, fleet, perfect(t, fleet))
	if c.Starts != 50 || c.SameDomain != 50 || c.SameNodes != 50 || c.Overtaken != 0 || len(c.Differences) > 0 {
		t.Errorf("%+v", c)
	}
	if c.Waits.Max != 75*time.Millisecond || c.Making.P50 != quantum ||
		c.Binding.P50 != 25*time.Millisecond {
		t.Errorf("waits %s, making %s, binding %s", c.Waits, c.Making, c.Binding)
	}
	if missing := rerun.Enough([]rerun.Comparison{c}); len(missing) > 0 {
		t.Error(missing)
	}
}

// Differences are found, and reported.
func TestPlay_ReportsDifferences(t *testing.T) {
	fleet := machines(t)
	for name, of := range map[string]struct {
		change func(record *rerun.Record)
		want   string
	}{
		"elsewhere": {func(record *rerun.Record) {
			run := &record.Runs[slices.IndexFunc(record.Runs, func(r rerun.Run) bool { return len(r.Nodes) == 1 })]
			for run.Nodes[0] = range map[string]bool{"v100-0": true, "v100-1": true} {
			}
		}, "same domain"},
		"late": {func(record *rerun.Record) {
			for i := range record.Runs {
				record.Runs[i].Bound = record.Runs[i].Bound.Add(1200 * time.Millisecond)
				if i%2 == 0 { // an equal time of the API for all gangs is no difference
					record.Runs[i].Bound = record.Runs[i].First
				}
			}
		}, "waits differ"},
		"overtaken": {func(record *rerun.Record) {
			last := slices.MaxFunc(record.Runs, func(a, b rerun.Run) int { return a.First.Compare(b.First) })
			for i := range record.Runs {
				if record.Runs[i].Gang == last.Gang {
					record.Runs[i].First = record.Runs[i].Whole.Add(-time.Second)
				}
			}
		}, "another order"},
		"never": {func(record *rerun.Record) {
			record.Runs[7].First, record.Runs[7].Bound, record.Runs[7].Free = time.Time{}, time.Time{}, time.Time{}
		}, "same domain"},
	} {
		t.Run(name, func(t *testing.T) {
			record := perfect(t, fleet)
			of.change(&record)
			missing := strings.Join(rerun.Enough([]rerun.Comparison{compared(t, fleet, record)}), "; ")
			if !strings.Contains(missing, of.want) {
				t.Errorf("said: %q, want %q", missing, of.want)
			}
		})
	}
}

// Gangs that wait when the fleet is opened are submitted at that instant, in the order of their arrival.
func TestScene_OpenedFleetSubmitsAtOnce(t *testing.T) {
	fleet := machines(t)
	record := perfect(t, fleet)
	record.Opened = record.Begin.Add(10 * time.Second)
	s, err := rerun.Scene(fleet, record, nil, rerun.Delays{})
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range s.Jobs {
		if j.Submit != inScene*10*time.Second {
			t.Errorf("%s comes at %v, want 100 s, ten seconds of the record", j.ID, j.Submit)
		}
		if i > 0 && j.Waited > s.Jobs[i-1].Waited {
			t.Errorf("%s waits longer than %s before it", j.ID, s.Jobs[i-1].ID)
		}
	}
}

// A record of a gang that was never whole cannot be played.
func TestPlay_RefusesGangThatWasNeverWhole(t *testing.T) {
	fleet := machines(t)
	record := perfect(t, fleet)
	record.Runs[3].Whole = time.Time{}
	if _, err := rerun.Play(t.Context(), player(t), fleet, record); err == nil {
		t.Error("it is played")
	}
}

// pod is a member of a gang of the plan.
func pod(gang string, attempt, rank int, node string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(gang, attempt, rank)), Labels: map[string]string{
			"jobset.sigs.k8s.io/jobset-name": gang, "jobset.sigs.k8s.io/restart-attempt": strconv.Itoa(attempt),
			"batch.kubernetes.io/job-completion-index": strconv.Itoa(rank),
		}},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	}
}

// A gang's instants are those of its first or last pod, each start on its own; an event that is delivered twice
// happened once.
func TestRecorder_SeesWholeGangs(t *testing.T) {
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	clk := clocktesting.NewFakePassiveClock(begin)
	recorder := rerun.NewRecorder(rerun.Plan{Gangs: []rerun.Gang{{Name: "g", Members: 2}}}, clk)
	for i, of := range []struct {
		pod  *corev1.Pod
		gone bool
	}{
		{pod("g", 0, 0, "", ""), false},
		{pod("g", 0, 1, "", ""), false},
		{pod("g", 0, 1, "b", ""), false},
		{pod("g", 0, 0, "a", ""), false},
		{pod("g", 0, 0, "a", corev1.PodRunning), false},
		{pod("g", 0, 1, "b", corev1.PodFailed), false},
		{pod("g", 0, 1, "b", corev1.PodFailed), true},
		{pod("g", 0, 0, "a", corev1.PodRunning), true},
		{pod("g", 1, 0, "", ""), false},
		{pod("other", 0, 0, "c", ""), false},
	} {
		clk.SetTime(begin.Add(time.Duration(i) * time.Second))
		recorder.Observe(of.pod, of.gone)
	}
	runs := recorder.Runs()
	if len(runs) != 2 || !runs[1].Whole.IsZero() {
		t.Fatalf("%+v", runs)
	}
	r := runs[0]
	var got []int
	for _, at := range []time.Time{r.Whole, r.First, r.Bound, r.Ending, r.Free} {
		got = append(got, int(at.Sub(begin)/time.Second))
	}
	if !slices.Equal(got, []int{1, 2, 3, 5, 7}) || !slices.Equal(r.Nodes, []string{"a", "b"}) {
		t.Errorf("instants %v, nodes %v", got, r.Nodes)
	}
	if at := recorder.Changed(); !at.Equal(begin.Add(8 * time.Second)) {
		t.Errorf("changed at %s", at)
	}
}
