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
func TestQueue_RefusedEvictionDoesNotCount(t *testing.T) {
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
				f.queue.RefusePreemption("team/first")
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

// A unit that passed a lease is evicted for its owner, and the lease does not change. The state is written for the
// eviction: a new leader must not evict the unit a second time on the day.
func TestQueue_EvictionIsAChangeOfTheState(t *testing.T) {
	const insists = int32(1_000_000) // lower ones have a price, and do not evict who passed
	f := newStill(t, 2)
	ofPriority := func(name string, p int32) {
		f.groups[types.NamespacedName{Namespace: "team", Name: name}].Spec.Priority = &p
	}
	f.runs("ends", "8", time.Hour, 0)
	ofPriority("ends", insists)
	large := f.group("large", 2)
	ofPriority("large", insists)
	f.asks(large, "8")
	f.runs("passes", "8", 48*time.Hour, 1)[0].Spec.TerminationGracePeriodSeconds = new(int64(60))
	f.queue.Started("team/passes", []string{f.nodes[1].Node().Name})
	f.clock.Step(30 * time.Minute)
	if out := f.asks(large, "8"); len(out.Preempted) > 0 {
		t.Fatalf("half an hour before its instant: %+v", out.Preempted)
	}
	f.clock.Step(30*time.Minute - 30*time.Second)
	f.pass(time.Second) // the instant of the eviction is due
	before := f.queue.Changes()
	out := f.asks(large, "8")
	if !evicts(out, "team/passes") || out.Lease == nil {
		t.Fatalf("the owner of the lease evicts nothing: %+v", out)
	}
	if f.queue.Changes() == before {
		t.Error("nothing is written for an eviction")
	}
}
