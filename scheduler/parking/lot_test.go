package parking_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/parking"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// yard is a lot, a clock that stands still, and who was woken.
type yard struct {
	*parking.Lot
	clock *clocktesting.FakeClock
	mu    sync.Mutex
	woken []string
}

func newYard() *yard {
	c := clocktesting.NewFakeClock(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	y := &yard{Lot: parking.NewLot(timing.With(c)), clock: c}
	y.Wakes(func(key types.NamespacedName) {
		y.mu.Lock()
		defer y.mu.Unlock()
		y.woken = append(y.woken, key.Name)
	})
	return y
}

// park parks a gang that waits for so many hours already.
func (y *yard) park(name, question string, hours int) {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
	}
	y.Park(group, y.clock.Now().Add(-time.Duration(hours)*time.Hour), question, y.Changes())
}

func (y *yard) holds(name string) bool { return y.Holds(key(name), types.UID(name)) }

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

// expect waits until these were woken since the last call, in any order.
func (y *yard) expect(t *testing.T, names ...string) {
	t.Helper()
	var got []string
	for range 200 {
		y.mu.Lock()
		got = slices.Sorted(slices.Values(y.woken))
		y.mu.Unlock()
		if slices.Equal(got, names) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if !slices.Equal(got, names) {
		t.Fatalf("woken %q, want %q", got, names)
	}
	y.mu.Lock()
	y.woken = nil
	y.mu.Unlock()
}

func TestAChangeWakesTheFirstOfEachQuestion(t *testing.T) {
	y := newYard()
	y.park("large-new", "large", 1)
	y.park("large-old", "large", 3)
	y.park("small", "small", 2)
	y.clock.Step(time.Minute)
	if !y.holds("large-old") || !y.holds("small") {
		t.Fatal("they are not held")
	}
	y.expect(t)

	y.Change()
	y.Change() // one of many: nodes become free one by one
	y.clock.Step(60 * time.Millisecond)
	y.expect(t, "large-old", "small")
	if y.holds("large-old") || !y.holds("large-new") {
		t.Error("the wrong one is held")
	}

	// A second later they are asked again, for what the scheduler saw after us. One is back by then; of the other nothing
	// was heard, so the call may have been lost, and nobody behind it is asked in its place.
	y.park("large-old", "large", 3)
	y.clock.Step(time.Second)
	y.expect(t, "large-old", "small")

	// It goes, and the next with its question is asked.
	y.Placed(key("large-old"))
	y.expect(t, "large-new")
}

// The scheduler takes the first who comes when it has nothing to do, so they have to come in the queue's order.
func TestThoseWhoAreWokenComeInTheQueuesOrder(t *testing.T) {
	y := newYard()
	var want []string
	for i := range 20 {
		name := fmt.Sprintf("gang-%02d", i)
		y.park(name, "question of "+name, 20-i)
		want = append(want, name)
	}
	y.clock.Step(time.Minute)
	y.Change()
	y.clock.Step(time.Second)
	var got []string
	for range 200 {
		y.mu.Lock()
		got = slices.Clone(y.woken)
		y.mu.Unlock()
		if len(got) >= len(want) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("woken %q, want %q", got, want)
	}
}

func TestAGangIsNotParkedAgainstAChange(t *testing.T) {
	y := newYard()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "late", UID: "late"}}
	seen := y.Changes()
	y.Change() // between the look at the cluster and the verdict
	y.Park(group, time.Time{}, "question", seen)
	if y.holds("late") {
		t.Error("it missed the change")
	}
	y.park("behind", "question", -1) // asks the same, and came later
	y.clock.Step(60 * time.Millisecond)
	y.expect(t, "late")
	// A change just before the look: it may not have been in what was looked at, so a second later it is asked again.
	y.park("late", "question", 0)
	if !y.holds("late") {
		t.Error("it is not held")
	}
	y.clock.Step(time.Second)
	y.expect(t, "late")
}

func TestNobodyIsHeldForEver(t *testing.T) {
	y := newYard()
	y.park("forgotten", "question", 0)
	y.clock.Step(5 * time.Minute)
	if y.holds("forgotten") {
		t.Error("five minutes later it is still held")
	}
	y.park("gone", "question", 0)
	y.Forget(key("gone"), "another")
	if !y.holds("gone") {
		t.Error("forgotten for another one's sake")
	}
	y.Forget(key("gone"), "gone")
	y.park("changed", "question", 0)
	y.Release(key("changed"))
	if y.holds("gone") || y.holds("changed") {
		t.Error("they are still held")
	}
}

// Whoever comes while changes are gathered comes after all that are before it, but not after one that was called and does not come.
func TestWhoComesInBetweenWaits(t *testing.T) {
	y := newYard()
	overtakes := func(hours int) bool {
		group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "new", UID: "new"}}
		return y.Overtakes(group, y.clock.Now().Add(-time.Duration(hours)*time.Hour))
	}
	y.park("old", "small", 2)
	y.clock.Step(time.Minute)
	if overtakes(1) {
		t.Error("nothing changed, so it may be asked")
	}
	y.Change()
	if !overtakes(1) || overtakes(3) {
		t.Error("something changed: who waits longer is asked first")
	}
	y.clock.Step(60 * time.Millisecond)
	y.expect(t, "old")
	y.clock.Step(2 * time.Second)
	y.Change()
	if overtakes(1) {
		t.Error("the other was called and does not come")
	}
}

// A gang that is called while it is being tried does not hear it. Those behind it that were called with it must not be asked in its
// place.
func TestACallDuringAnAttemptIsNotLost(t *testing.T) {
	y := newYard()
	y.park("first", "large", 3)
	y.park("second", "small", 2)
	y.Keeps(key("first"), "first")
	y.Keeps(key("second"), "second")
	y.clock.Step(time.Minute)
	y.Change()
	y.clock.Step(40 * time.Millisecond)

	y.park("first", "large", 3) // it was asked, for whatever reason, and its attempt is not over yet
	y.clock.Step(20 * time.Millisecond)
	y.expect(t, "first", "second") // the queue does not hear of the first
	if y.Keeps(key("first"), "first") {
		t.Error("it is held although it was called")
	}
	second := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "second", UID: "second"}}
	if !y.Overtakes(second, y.clock.Now().Add(-2*time.Hour)) {
		t.Error("the second is asked before the first")
	}
	y.park("second", "small", 2)
	y.clock.Step(60 * time.Millisecond)
	y.expect(t, "first", "second")

	// Who comes to the queue because it was called is not called again for that.
	if y.Keeps(key("first"), "first") {
		t.Error("it is held although it was called")
	}
	y.park("first", "large", 3)
	y.Keeps(key("first"), "first")
	y.park("second", "small", 2)
	y.Keeps(key("second"), "second")
	y.clock.Step(100 * time.Millisecond)
	y.expect(t)
}
