package runtimes_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
)

// A start is forecast once for each wait: by the running workloads, whether their ends are declared or not, and by
// those that wait before it.
func TestLearner_Foresee(t *testing.T) {
	now := int64(1000)
	l := runtimes.New(func() int64 { return now })
	key := func() forecast.Key { return forecast.Key{Namespace: "a", Stem: "train", Size: 8} }
	calls := 0
	sight := func() runtimes.Sight {
		calls++
		return runtimes.Sight{
			Accelerators: 8, Oldest: 300,
			Running: []*contention.Unit{
				{ID: "a/declared", Accelerators: 4, End: contention.End{At: 4600, Certainty: contention.Certain}},
				{ID: "a/unknown", Accelerators: 4, Started: 400},
				{ID: "a/service", Accelerators: 8, End: contention.End{Certainty: contention.Never}},
			},
			Ahead: []runtimes.Ahead{{ID: "a/first", Accelerators: 8}},
		}
	}
	l.Waits("a/gang", key)
	l.Foresee("a/gang", sight)
	now = 1100
	l.Foresee("a/gang", sight)
	told, ok := l.Foreseen("a/gang")
	if !ok || calls != 1 || told.At != 1000 || told.Low > told.Middle || told.Middle > told.High || told.High == 0 {
		t.Errorf("after %d looks the forecast is %+v, %t", calls, told, ok)
	}
	l.Starts("a/gang")
	if _, ok := l.Foreseen("a/gang"); ok {
		t.Error("what has started has a forecast")
	}
	l.Foresee("a/gang", sight) // it was evicted
	if again, ok := l.Foreseen("a/gang"); !ok || again.At != 1100 {
		t.Errorf("the second forecast is %+v, %t", again, ok)
	}
	l.Withdraws("a/gang")
	if _, ok := l.Foreseen("a/gang"); ok {
		t.Error("what does not wait has a forecast")
	}
	var none *runtimes.Learner
	none.Foresee("a/gang", sight)
	if _, ok := none.Foreseen("a/gang"); ok {
		t.Error("without learning there is a forecast")
	}
}
