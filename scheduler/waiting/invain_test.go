package waiting_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// A unit is evicted once a day for entities with a price. Victims that the framework's filters refuse stay, so that the
// choice does not count: another gang may evict them. An eviction that took place counts.
func TestInVain_RefusedEvictionDoesNotCount(t *testing.T) {
	for name, refused := range map[string]bool{"the filters refuse the place": true, "the victim leaves": false} {
		t.Run(name, func(t *testing.T) {
			f := newStill(t, 1)
			f.runs("victim", "8", 48*time.Hour, 0)
			f.groups[types.NamespacedName{Namespace: "team", Name: "victim"}].Spec.Priority = new(int32(-10))
			f.clock.Step(time.Minute)
			first := f.asks(f.group("first", 1), "8")
			if !evicts(first, "team/victim") {
				t.Fatalf("the first gang evicts nothing: %+v", first)
			}
			if refused {
				f.queue.InVain("team/first")
			}
			f.queue.Remove("team/first")
			f.clock.Step(time.Minute)
			second := f.asks(f.group("second", 1), "8")
			if got := evicts(second, "team/victim"); got != refused {
				t.Errorf("the second gang evicts: %t; %+v", got, second)
			}
		})
	}
}

func evicts(out waiting.Outcome, victim contention.ID) bool {
	return slices.ContainsFunc(
		out.Preempted,
		func(p contention.Preempted) bool { return slices.Contains(p.Victims, victim) },
	)
}
