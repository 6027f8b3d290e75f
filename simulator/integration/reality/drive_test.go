package reality_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
)

var trainJobs = schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}

// driver carries a plan out on the cluster.
type driver struct {
	t         *testing.T
	plan      rerun.Plan
	namespace string
	recorder  *rerun.Recorder
	record    rerun.Record
}

// drive carries a plan out in a namespace of that try, and returns its record. Nothing of it is left on the cluster.
func drive(t *testing.T, plan rerun.Plan, try int) rerun.Record {
	t.Helper()
	d := &driver{
		t: t, plan: plan, namespace: fmt.Sprintf("%s-%d-%d", plan.Kind, plan.Seed, try),
		recorder: rerun.NewRecorder(plan, clock.RealClock{}),
	}
	_, err := shared.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.discard()
	if err := d.recorder.Watch(t.Context(), shared.Client, d.namespace); err != nil {
		t.Fatal(err)
	}
	d.record = rerun.Record{
		Plan: plan, Begin: time.Now(),
		Asked: make([]time.Time, len(plan.Gangs)), Queued: make([]time.Time, len(plan.Gangs)),
	}
	if plan.Kind == rerun.Burst {
		d.burst()
	} else {
		d.serial()
	}
	d.within(2*time.Minute, "the start of every gang", func() bool { return d.waiting() == 0 })
	d.record.Runs = d.recorder.Runs()
	return d.record
}

// most is the largest number of the 72 nodes in use when a gang arrives by itself: then it finds room, and no gang
// waits.
const most = 40

// serial submits one gang after another: each when the last has its nodes, there is room for it, and nothing else is
// about to happen.
func (d *driver) serial() {
	for i, g := range d.plan.Gangs {
		d.within(time.Minute, "room for "+g.Name, func() bool { return d.used()+nodesOf(g) <= most })
		d.quiet(ahead)
		d.submit(i)
		d.settled()
		for k, after := range d.plan.Losses {
			if after == i {
				d.lose(d.plan.Picks[k])
			}
		}
	}
}

// used is the approximate number of nodes in use: gangs in parts of nodes count as so many whole ones.
func (d *driver) used() int {
	n := 0
	for i, g := range d.plan.Gangs {
		run := d.latest()[g.Name]
		if !d.record.Asked[i].IsZero() && run.Free.IsZero() {
			n += nodesOf(g)
		}
	}
	return n
}

func nodesOf(g rerun.Gang) int { return (g.Members*g.GPUs + 3) / 4 }

// submit creates the TrainJob of a gang.
func (d *driver) submit(i int) {
	g := d.plan.Gangs[i]
	if d.plan.Kind == rerun.Burst {
		g.RunTime = time.Hour // its end is made
	}
	job, err := g.TrainJob(d.namespace)
	if err != nil {
		d.t.Error(err)
		return
	}
	d.record.Asked[i] = time.Now()
	stored, err := shared.Create(d.t.Context(), job)
	if err != nil {
		d.t.Error(err)
		return
	}
	d.record.Queued[i] = stored.GetCreationTimestamp().Time
}

const (
	// still is the time without events before another one, ahead the time in which nothing may be due. Before a node is
	// lost it is restart: the pods of a gang that lost one are there again after 2.5 s, in virtual time at once, and a
	// gang that ends between leaves another room to it.
	still, ahead, restart = 300 * time.Millisecond, 1500 * time.Millisecond, 4500 * time.Millisecond
	// enough is the wait after which a whole gang is taken for one that has no room.
	enough = 1500 * time.Millisecond
)

// quiet returns when no event happens, or is about to for a while: whether a gang that arrives at the instant at which
// another one leaves sees its room is a race, on any system. It waits 20 seconds at most.
func (d *driver) quiet(ahead time.Duration) {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) && d.t.Context().Err() == nil && !d.isQuiet(time.Now(), ahead) {
		time.Sleep(20 * time.Millisecond)
	}
}

func (d *driver) isQuiet(now time.Time, ahead time.Duration) bool {
	if now.Sub(d.recorder.Changed()) < still {
		return false
	}
	for _, run := range d.recorder.Runs() {
		if !run.Bound.IsZero() && run.Free.IsZero() && d.due(run).Sub(now) < ahead {
			return false
		}
	}
	return true
}

// due returns the time at which a run ends.
func (d *driver) due(run rerun.Run) time.Time {
	i := slices.IndexFunc(d.plan.Gangs, func(g rerun.Gang) bool { return g.Name == run.Gang })
	return run.Bound.Add(d.plan.Gangs[i].RunTime)
}

// settled returns when every gang that was submitted has its nodes, or has waited for a while.
func (d *driver) settled() {
	d.within(3*time.Minute, "the pods of every gang", func() bool {
		submitted := 0
		for _, asked := range d.record.Asked {
			if !asked.IsZero() {
				submitted++
			}
		}
		for _, run := range d.latest() {
			if run.Whole.IsZero() || run.Bound.IsZero() && time.Since(run.Whole) < enough {
				return false
			}
			submitted--
		}
		return submitted == 0
	})
}

// latest is the last run of each gang.
func (d *driver) latest() map[string]rerun.Run {
	last := make(map[string]rerun.Run)
	for _, run := range d.recorder.Runs() {
		last[run.Gang] = run
	}
	return last
}

// waiting returns the number of gangs that have not started, or not again.
func (d *driver) waiting() int {
	n := len(d.plan.Gangs)
	for _, run := range d.latest() {
		if !run.Bound.IsZero() {
			n--
		}
	}
	return n
}

// away is the time for which a node is deleted.
const away = 4 * time.Second

// lose loses a node under a gang that runs for a while yet, and lets it return when that gang waits again, or runs.
func (d *driver) lose(pick int) {
	d.quiet(restart)
	var nodes []string
	for _, run := range d.latest() {
		if !run.Bound.IsZero() && run.Free.IsZero() && time.Until(d.due(run)) > ahead {
			nodes = append(nodes, run.Nodes...)
		}
	}
	if len(nodes) == 0 {
		d.t.Log("nothing runs that could lose a node")
		return
	}
	slices.Sort(nodes)
	node := nodes[pick%len(nodes)]
	struck := make(map[string]int)
	for _, run := range d.latest() {
		if !run.Bound.IsZero() && run.Free.IsZero() && slices.Contains(run.Nodes, node) {
			struck[run.Gang] = run.Attempt
		}
	}
	d.taint(node, trace.Fail)
	d.within(time.Minute, "the new pods of gangs that lost a node", func() bool {
		return !slices.ContainsFunc(d.recorder.Runs(), func(run rerun.Run) bool {
			attempt, hit := struck[run.Gang]
			return hit && attempt == run.Attempt && !d.again(run)
		})
	})
	d.settled()
	back := time.Now().Add(away)
	for time.Now().Before(back) {
		time.Sleep(20 * time.Millisecond)
	}
	d.quiet(ahead)
	d.taint(node, trace.Return)
}

// again reports whether there is a later run of a gang that is whole.
func (d *driver) again(run rerun.Run) bool {
	return slices.ContainsFunc(d.recorder.Runs(), func(other rerun.Run) bool {
		return other.Gang == run.Gang && other.Attempt > run.Attempt && !other.Whole.IsZero()
	})
}

// taint lets a node be lost, or return, and records the instant.
func (d *driver) taint(node string, kind trace.Kind) {
	d.t.Helper()
	taints := []corev1.Taint{}
	if kind == trace.Fail {
		taints = append(taints, rerun.Lost())
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": taints}})
	if err != nil {
		d.t.Fatal(err)
	}
	at := time.Now()
	_, err = shared.Client.CoreV1().Nodes().
		Patch(context.WithoutCancel(d.t.Context()), node, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.record.Events = append(d.record.Events, rerun.NodeEvent{At: at, Kind: kind, Node: node})
}

// discard deletes leftovers and waits until they are deleted, so that runs do not see each other's gangs.
func (d *driver) discard() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), time.Minute)
	defer cancel()
	if d.plan.Kind == rerun.Burst {
		d.maintain("") // it may have been cut off before it opened the fleet
	}
	lost := make(map[string]bool)
	for _, e := range d.record.Events {
		lost[e.Node] = e.Kind == trace.Fail
	}
	for node, still := range lost {
		if still {
			d.taint(node, trace.Return)
		}
	}
	for _, g := range d.plan.Gangs {
		err := shared.Dynamic.Resource(trainJobs).Namespace(d.namespace).Delete(ctx, g.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			d.t.Error(err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		pods, err := shared.Client.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, nil
	})
	if err != nil {
		d.t.Errorf("pods of %s are still there: %v", d.namespace, err)
	}
}

// within fails the test unless the condition holds in time.
func (d *driver) within(patience time.Duration, what string, holds func() bool) {
	d.t.Helper()
	err := wait.PollUntilContextTimeout(d.t.Context(), 20*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		d.t.Fatalf("%s did not come: %v\n%s", what, err, d.state())
	}
}

// state returns the state of every gang, for a test that failed.
func (d *driver) state() string {
	var lines []string
	for _, run := range d.recorder.Runs() {
		lines = append(lines, fmt.Sprintf("%s/%d: whole %t, bound %t, free %t", run.Gang, run.Attempt,
			!run.Whole.IsZero(), !run.Bound.IsZero(), !run.Free.IsZero()))
	}
	return strings.Join(lines, "\n")
}
