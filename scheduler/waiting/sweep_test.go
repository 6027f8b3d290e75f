package waiting_test

import (
	"slices"
	"testing"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// trial makes a gang one of a sweep with a limit on the running trials.
func trial(group *schedulingv1beta1.PodGroup, limit string) *schedulingv1beta1.PodGroup {
	group.Labels = map[string]string{topology.LabelSweep: "lr"}
	group.Annotations[topology.AnnotationSweepParallelism] = limit
	return group
}

// Beyond the limit a trial waits beside free nodes, without a lease, and another gang starts; when a trial ends, it is
// woken and starts.
func TestSweep_NextTrialStartsWhenOneEnds(t *testing.T) {
	f := newStill(t, 4)
	first := f.runs("first", "8", 0, 0)
	trial(f.groups[types.NamespacedName{Namespace: "team", Name: "first"}], "1")
	f.clock.Step(time.Second)
	second := trial(f.group("second", 1), "1")
	out := f.asks(second, "8")
	want := contention.SweepTurn{Name: "team/lr", Running: 1, Limit: 1}
	if out.Placed != nil || out.Lease != nil || out.Wait.Sweep == nil || *out.Wait.Sweep != want {
		t.Fatalf("the second trial: %+v", out)
	}
	if !f.queue.Holds("team/second") {
		t.Error("the second trial may enter the scheduling queue")
	}
	f.clock.Step(time.Second)
	if out := f.asks(f.group("other", 4), "4"); out.Placed == nil {
		t.Errorf("a gang of no sweep waits: %+v", out.Wait)
	}
	f.queue.Remove("team/other")
	f.leaves(first[0])
	if got := f.pass(200 * time.Millisecond); !slices.Equal(got, []contention.ID{"team/second"}) {
		t.Fatalf("woken are %v", got)
	}
	if out := f.asks(second, "8"); out.Placed == nil {
		t.Errorf("the second trial waits: %+v", out.Wait)
	}
}

// A scheduler that takes over counts the trials that run from the snapshot.
func TestSweep_IsCountedAfterAFailOver(t *testing.T) {
	f := newStill(t, 4)
	f.runs("first", "8", 0, 0)
	trial(f.groups[types.NamespacedName{Namespace: "team", Name: "first"}], "2")
	f.runs("second", "8", 0, 1)
	trial(f.groups[types.NamespacedName{Namespace: "team", Name: "second"}], "2")
	f.clock.Step(time.Second)
	if out := f.asks(trial(f.group("third", 1), "2"), "8"); out.Wait.Sweep == nil || out.Wait.Sweep.Running != 2 {
		t.Errorf("the third trial: %+v", out)
	}
}

// A trial that crashed has its turn as long as its place is reserved, and starts again first.
func TestSweep_LostTrialKeepsItsTurn(t *testing.T) {
	f := newStill(t, 4)
	pods := f.runs("crashed", "8", 0, 0)
	crashed := trial(f.groups[types.NamespacedName{Namespace: "team", Name: "crashed"}], "1")
	meta.SetStatusCondition(&crashed.Status.Conditions, metav1.Condition{
		Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled",
	})
	f.clock.Step(time.Minute)
	next := trial(f.group("next", 1), "1")
	if out := f.asks(next, "8"); out.Wait.Sweep == nil {
		t.Fatalf("the next trial: %+v", out)
	}
	f.queue.Lost(crashed, pods[0], waiting.Failed, false)
	f.leaves(pods[0])
	if out := f.asks(next, "8"); out.Wait.Sweep == nil || out.Wait.Sweep.Running != 1 {
		t.Errorf("the next trial starts on the turn of the crashed one: %+v", out)
	}
	if out := f.asks(crashed, "8"); out.Placed == nil {
		t.Errorf("the crashed trial waits: %+v", out.Wait)
	}
}
