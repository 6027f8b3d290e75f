package runtimes_test

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
)

// tuning is the kind of the runs in these tests.
func tuning() forecast.Key { return forecast.Key{Namespace: "vision", Stem: "tune", Size: 8} }

// clocked is a learner with a clock that stands still.
type clocked struct {
	*runtimes.Learner

	now int64
}

func newLearner() *clocked {
	c := &clocked{now: 1_000_000}
	c.Learner = runtimes.New(func() int64 { return c.now })
	return c
}

// runs has a workload run for so many seconds, and complete.
func (c *clocked) runs(id contention.ID, seconds int64) {
	c.Waits(id, tuning)
	c.Starts(id)
	c.now += seconds
	c.Ends(id, runtimes.Succeeded)
	c.Leaves(id)
}

// predicts returns the prediction for a workload that has not waited before.
func (c *clocked) predicts() int64 {
	defer c.Forget("fresh")
	return c.Waits("fresh", tuning)
}

// The runs that count as completed: after seven that did, each of these is the eighth, or is none.
func TestLearner_WhatCounts(t *testing.T) {
	for name, of := range map[string]struct {
		happens func(c *clocked)
		counts  bool
	}{
		"succeeds": {func(c *clocked) { c.Ends("x", runtimes.Succeeded); c.Leaves("x") }, true},
		"succeeds, and its informer is late": {
			func(c *clocked) { c.Leaves("x"); c.now += 30; c.Ends("x", runtimes.Succeeded) }, true,
		},
		"the launcher succeeds, the workers are deleted": {func(c *clocked) {
			c.Ends("x", runtimes.Succeeded)
			c.Ends("x", runtimes.Deleted)
			c.Leaves("x")
		}, true},
		"a lost member is replaced": {func(c *clocked) {
			c.Ends("x", runtimes.Failed)
			c.Starts("x")
			c.Ends("x", runtimes.Succeeded)
			c.Leaves("x")
		}, true},
		"fails":                    {func(c *clocked) { c.Ends("x", runtimes.Failed); c.Leaves("x") }, false},
		"is deleted":               {func(c *clocked) { c.Ends("x", runtimes.Deleted); c.Leaves("x") }, false},
		"is deleted, and succeeds": {func(c *clocked) { c.Ends("x", runtimes.Deleted); c.Ends("x", runtimes.Succeeded); c.Leaves("x") }, false},
		"leaves without a word":    {func(c *clocked) { c.Leaves("x") }, false},
		"its group is deleted":     {func(c *clocked) { c.Forget("x"); c.Ends("x", runtimes.Succeeded); c.Leaves("x") }, false},
		"a member still runs":      {func(c *clocked) { c.Ends("x", runtimes.Succeeded) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newLearner()
			for i := range 7 {
				c.runs(contention.ID(strconv.Itoa(i)), 600)
			}
			c.Waits("x", tuning)
			c.Starts("x")
			c.now += 600
			of.happens(c)
			if got := c.predicts(); (got > 0) != of.counts {
				t.Errorf("predicted are %d s", got)
			}
		})
	}
}

// The time of a run is that of its last attempt, and ends when the last member leaves, whenever it is reported how it
// ended.
func TestLearner_TimeOfTheLastAttempt(t *testing.T) {
	c := newLearner()
	for i := range 20 {
		id := contention.ID(strconv.Itoa(i))
		c.Waits(id, tuning)
		c.Starts(id)
		c.now += 50_000
		c.Ends(id, runtimes.Failed) // it is evicted, and waits again
		c.Leaves(id)
		c.Waits(id, tuning)
		c.now += 7000
		c.Starts(id)
		c.now += 600
		c.Leaves(id)
		c.now += 9000
		c.Ends(id, runtimes.Succeeded)
	}
	if got := c.predicts(); got < 500 || got > 720 {
		t.Errorf("runs of 600 s are predicted to take %d s", got)
	}
}

// A prediction made when a workload began to wait holds while it waits and while it runs.
func TestLearner_PredictionsStay(t *testing.T) {
	c := newLearner()
	for i := range 8 {
		c.runs(contention.ID(strconv.Itoa(i)), 600)
	}
	was := c.Waits("x", tuning)
	for i := range 50 {
		c.runs(contention.ID(fmt.Sprint("later-", i)), 60_000)
	}
	if now := c.Waits("x", tuning); now != was || was == 0 {
		t.Errorf("predicted were %d s, then %d s", was, now)
	}
	c.Starts("x")
	at, ok := c.Runs("x", 0, tuning)
	if want := c.now + was; at != want || !ok {
		t.Errorf("its end is %d, not %d", at, want)
	}
	if fresh := c.predicts(); fresh <= was {
		t.Errorf("another one is predicted to take %d s", fresh)
	}
}

// A unit that ran before the scheduler did is predicted by its age: half of such runs take ten minutes, half ten hours,
// and it has run for one.
func TestLearner_RunsBeforeTheScheduler(t *testing.T) {
	c := newLearner()
	for i := range 40 {
		c.runs(contention.ID(strconv.Itoa(i)), []int64{600, 36_000}[i%2])
	}
	at, ok := c.Runs("x", c.now-3600, tuning)
	if took := at - (c.now - 3600); !ok || took < 30_000 || took > 43_000 {
		t.Errorf("it is predicted to take %d s, %t", took, ok)
	}
	c.now += 1000
	if again, _ := c.Runs("x", c.now-3600, tuning); again != at {
		t.Error("the prediction moves")
	}
}

// A scheduler that does not learn has no learner.
func TestLearner_Nil(t *testing.T) {
	var l *runtimes.Learner
	l.Starts("x")
	l.Ends("x", runtimes.Succeeded)
	l.Leaves("x")
	l.Forget("x")
	if _, ok := l.Runs("x", 0, tuning); ok || l.Waits("x", tuning) != 0 {
		t.Error("it predicts")
	}
}

func TestKeyOf(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "vision", Name: "bert-7-x2k9f"}}
	pod.Spec.ServiceAccountName = "default"
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Controller: new(true)}}
	if got := runtimes.KeyOf(
		nil,
		pod,
		8,
	); got != (forecast.Key{Namespace: "vision", Runtime: "Job", Stem: "bert", Size: 8}) {
		t.Errorf("of a single pod: %+v", got)
	}
	pod.Spec.ServiceAccountName = "ada"
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "vision", Name: "bert-8"}}
	group.OwnerReferences = []metav1.OwnerReference{{Kind: "TrainJob", Controller: new(true)}}
	want := forecast.Key{Namespace: "vision", Owner: "ada", Runtime: "TrainJob", Stem: "bert", Size: 64}
	if got := runtimes.KeyOf(group, pod, 64); got != want {
		t.Errorf("of a gang: %+v", got)
	}
}
