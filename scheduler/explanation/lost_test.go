package explanation_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// A scheduler that takes over knows of a gang's wait by the gang's own condition only.
func TestWriter_EndsTheWaitThatAnotherSchedulerReported(t *testing.T) {
	s := newStage(t)
	s.group.OwnerReferences = nil // so that nothing else is to be said about it
	s.group.Status.Conditions = []metav1.Condition{
		{
			Type:    explanation.Condition,
			Status:  metav1.ConditionTrue,
			Reason:  explanation.NoRoom,
			Message: "4 nodes full",
		},
	}
	s.Placed(s.group, nil)
	s.expect(t, metav1.ConditionFalse, "the gang has its nodes")
	s.Placed(s.group, nil) // the next member; the cache may still show the old condition
	if n := s.writes(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

// A write that fails is repeated, unless there is something newer to say.
func TestWriter_RepeatsAFailedWrite(t *testing.T) {
	s := newStage(t)
	var fails atomic.Int32
	s.client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fails.Add(-1) >= 0, nil, errors.New("etcd: no leader")
	})
	waitFor := func(what string, done func() bool) {
		t.Helper()
		for range 500 {
			if done() {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatal("timed out: " + what)
	}
	fails.Store(2)
	s.Waits(s.group, explanation.NoRoom, "4 nodes full", standing.Turn{})
	for range 2 { // the failed note is retained for five seconds each time
		waitFor("the failed write is to be repeated", s.clock.HasWaiters)
		s.clock.Step(5 * time.Second)
	}
	s.expect(t, metav1.ConditionTrue, "4 nodes full")

	// The gang starts between a failed write and its repetition.
	fails.Store(1)
	s.clock.Step(2 * time.Minute)
	s.Waits(s.group, explanation.WrongRequest, "there is no such level", standing.Turn{})
	waitFor("the failed write is to be repeated", s.clock.HasWaiters)
	s.Placed(s.group, nil)
	s.expect(t, metav1.ConditionFalse, "the gang has its nodes")
	s.clock.Step(time.Minute)
	time.Sleep(50 * time.Millisecond)
	g, err := s.client.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if apimeta.IsStatusConditionTrue(g.Status.Conditions, explanation.Condition) {
		t.Error("a gang that runs is said to wait")
	}
}

// An instant that was named and has passed is replaced, although nothing else has changed.
func TestWriter_NamesNoInstantOfThePast(t *testing.T) {
	s := newStage(t)
	says := func(after time.Duration) string {
		return "no room; a place is reserved for it in su-1" + standing.ExpectedAt(
			s.clock.Now().Add(after).UTC().Format(time.RFC3339),
		)
	}
	first := says(10 * time.Minute)
	s.Waits(s.group, explanation.NoRoom, first, standing.Turn{Position: 1})
	s.expect(t, metav1.ConditionTrue, first)
	s.clock.Step(5 * time.Minute)
	s.Waits(
		s.group,
		explanation.NoRoom,
		says(6*time.Minute),
		standing.Turn{Position: 1},
	) // no news: it shifts all the time
	s.expect(t, metav1.ConditionTrue, first)
	if n := s.writes(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
	s.clock.Step(6 * time.Minute)
	later := says(20 * time.Minute)
	s.Waits(s.group, explanation.NoRoom, later, standing.Turn{Position: 1})
	s.expect(t, metav1.ConditionTrue, later)
}
