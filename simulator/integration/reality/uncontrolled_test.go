package reality_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
	"github.com/lockstep-project/lockstep/simulator/integration/reality/uncontrolled"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
)

// replayRecord holds the observations of a replay.
type replayRecord struct {
	Discipline string
	Plan       uncontrolled.Plan
	// Begin is the instant of the first submission, Calibrated that of the gangs that measured starts before.
	Begin, Calibrated time.Time
	Runs, Calibration []rerun.Run
}

// The simulator predicts the results of real components with 300 gangs under contention, if nothing is controlled: the
// mean and the 95th percentile of the waits within 10 %, utilization within a point.
func TestReplay_Uncontrolled(t *testing.T) {
	if !*replay {
		t.Skip("with -uncontrolled: it takes ten minutes for each seed, and another fleet")
	}
	addUrgentClass(t)
	var all []uncontrolled.Comparison
	for _, seed := range replaySeeds(t) {
		record := runReplay(t, uncontrolled.Draw(seed))
		keepReplay(t, record)
		all = append(all, judge(t, record))
	}
	if *write != "" {
		writeReplays(t, all)
	}
}

// Records of earlier runs are held against the simulator again, without a cluster.
func TestReplay_Recorded(t *testing.T) {
	if *recorded == "" {
		t.Skip("with -recorded: the folder that -keep named")
	}
	files, err := filepath.Glob(filepath.Join(*recorded, "uncontrolled-*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("-recorded %s: there are no records (%v); write some with -uncontrolled -keep", *recorded, err)
	}
	var all []uncontrolled.Comparison
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var record replayRecord
		if err := json.Unmarshal(content, &record); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, judge(t, record))
	}
	if *write != "" {
		writeReplays(t, all)
	}
}

// judge holds a record against the simulator.
func judge(t *testing.T, record replayRecord) uncontrolled.Comparison {
	t.Helper()
	machines, err := fleet.Open(uncontrolled.Fleet)
	if err != nil {
		t.Fatal(err)
	}
	player := playerOf(t, record.Discipline)
	startup := uncontrolled.Measure(uncontrolled.Calibration(), record.Calibrated, record.Calibration)
	played, err := uncontrolled.Play(t.Context(), player, machines, record.Plan, startup)
	if err != nil {
		t.Fatal(err)
	}
	observed := uncontrolled.Observed(
		record.Plan,
		record.Begin,
		int64(len(machines.Nodes)*uncontrolled.PerNode),
		record.Runs,
	)
	c := uncontrolled.Compare(machines, observed, played)
	c.Seed, c.Discipline, c.Engine, c.Startup = record.Plan.Seed, record.Discipline, "direct", startup
	if c.Spread, err = uncontrolled.Predict(t.Context(), player, machines, record.Plan, startup); err != nil {
		t.Fatal(err)
	}
	one := []uncontrolled.Comparison{c}
	t.Logf("\n%s\n%s", uncontrolled.Table(one), uncontrolled.Notes(one))
	for _, missing := range c.Missing() {
		t.Error(missing)
	}
	return c
}

// shippedDiscipline returns the discipline of the queue without any configuration.
func shippedDiscipline(t *testing.T) string {
	t.Helper()
	args, err := config.Placement(nil)
	if err != nil {
		t.Fatal(err)
	}
	return args.Queueing.Discipline
}

// playerOf returns the engine of lockstep simulate for a discipline: that of the scheduler lockstep for the shipped
// one, else of its variant.
func playerOf(t *testing.T, discipline string) engine.Engine {
	t.Helper()
	name := schedulers.Lockstep
	if discipline != shippedDiscipline(t) {
		name += ":" + discipline
	}
	s, err := schedulers.Open(schedulers.Ask{Name: name}, clock.RealClock{})
	if err != nil {
		t.Fatalf("-queueing %s: %v", discipline, err)
	}
	return s.Engine
}

// runReplay runs a plan on the cluster and returns the record. The cluster is idle before, and its first gangs are
// those that measure starts.
func runReplay(t *testing.T, plan uncontrolled.Plan) replayRecord {
	t.Helper()
	record := replayRecord{Discipline: cmp.Or(*queueing, shippedDiscipline(t)), Plan: plan}
	record.Calibrated, record.Calibration = submitAll(t, fmt.Sprintf("calibration-%d", plan.Seed),
		uncontrolled.Calibration(), 2*time.Minute)
	record.Begin, record.Runs = submitAll(t, fmt.Sprintf("uncontrolled-%d", plan.Seed), plan.Gangs, 15*time.Minute)
	return record
}

// submitAll submits gangs at their instants and returns when the last has ended, or with the observations until the
// patience was over.
func submitAll(t *testing.T, namespace string, gangs []rerun.Gang, patience time.Duration) (time.Time, []rerun.Run) {
	t.Helper()
	_, err := shared.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	recorder := rerun.NewRecorder(rerun.Plan{Gangs: gangs}, clock.RealClock{})
	if err := recorder.Watch(t.Context(), shared.Client, namespace); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var group sync.WaitGroup
	for _, g := range gangs {
		group.Go(func() { submitAt(t, namespace, g, begin) })
	}
	group.Wait()
	for deadline := begin.Add(patience); time.Now().Before(deadline) && t.Context().Err() == nil; {
		if allEnded(gangs, recorder.Runs()) {
			return begin, recorder.Runs()
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Errorf("not all gangs of %s have ended after %s", namespace, patience)
	return begin, recorder.Runs()
}

func submitAt(t *testing.T, namespace string, g rerun.Gang, begin time.Time) {
	t.Helper()
	job, err := g.TrainJob(namespace)
	if err != nil {
		t.Error(err)
		return
	}
	time.Sleep(time.Until(begin.Add(g.Submit)))
	if _, err := shared.Create(t.Context(), job); err != nil {
		t.Error(err)
	}
}

// allEnded reports whether the last run of each gang is over, and was not evicted: its pods ran for their time.
func allEnded(gangs []rerun.Gang, runs []rerun.Run) bool {
	last := make(map[string]rerun.Run)
	for _, run := range runs {
		last[run.Gang] = run
	}
	return !slices.ContainsFunc(gangs, func(g rerun.Gang) bool {
		run, seen := last[g.Name]
		return !seen || run.Free.IsZero() || run.Ending.Sub(run.First) < g.RunTime-time.Second
	})
}

// addUrgentClass creates the PriorityClass of urgent gangs.
func addUrgentClass(t *testing.T) {
	t.Helper()
	class := &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: uncontrolled.UrgentClass}, Value: uncontrolled.Urgent,
	}
	_, err := shared.Client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// replaySeeds reads -seeds.
func replaySeeds(t *testing.T) []uint64 {
	t.Helper()
	var seeds []uint64
	for text := range strings.SplitSeq(*seedList, ",") {
		var seed uint64
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatalf("-seeds %s: %q is no number; write some such as 1,2", *seedList, text)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// keepReplay writes a record to the folder of -keep.
func keepReplay(t *testing.T, record replayRecord) {
	t.Helper()
	if *keep == "" {
		return
	}
	content, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(*keep, fmt.Sprintf("uncontrolled-%s-%d.json", record.Discipline, record.Plan.Seed))
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The marks around the tables of the replay on a page.
const replayOpening, replayClosing = "<!-- uncontrolled:begin -->\n", "<!-- uncontrolled:end -->"

// writeReplays replaces the tables of the replay on the page of -write.
func writeReplays(t *testing.T, all []uncontrolled.Comparison) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%d CPUs, %s/%s, %s.\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	fmt.Fprintf(&text, "%s\n%s\n", uncontrolled.Table(all), uncontrolled.Notes(all))
	rewrite(t, replayOpening, replayClosing, text.String())
}
