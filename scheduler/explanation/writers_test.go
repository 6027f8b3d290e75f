package explanation_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// handle has those parts of a plugin's handle that a writer needs.
type handle struct {
	fwk.Handle
	profile string
	client  kubernetes.Interface
}

func (h handle) ProfileName() string                       { return h.profile }
func (h handle) ClientSet() kubernetes.Interface           { return h.client }
func (h handle) EventRecorder() events.EventRecorderLogger { return nil }

// One plugin says that members are missing, and another that the gang starts, before the first note is written: the
// group shows the later one.
func TestWriters_KeepTheOrderOfPlugins(t *testing.T) {
	s := newStage(t)
	s.group.OwnerReferences = nil
	var beside []func()
	slow := timing.With(s.clock)
	slow.Beside = func(do func()) { beside = append(beside, do) }
	writers := explanation.NewWriters(slow)
	profile := handle{profile: "lockstep-scheduler", client: s.client}
	members, place := writers.Of(t.Context(), profile), writers.Of(t.Context(), profile)

	members.Waits(s.group, explanation.Incomplete, "1 of the 4 members that it needs are lost", standing.Turn{})
	place.Placed(s.group, nil)
	for _, do := range beside {
		do()
	}
	s.expect(t, metav1.ConditionFalse, "the gang has its nodes")

	profile.profile = "another"
	if writers.Of(t.Context(), profile) == place {
		t.Error("two profiles share a writer, and so an event's source")
	}
}

// A gang that was incomplete and is queued behind others no longer reports missing members.
func TestWriters_QueuedEndsIncomplete(t *testing.T) {
	s := newStage(t)
	s.Waits(s.group, explanation.NoRoom, "3 nodes are full", standing.Turn{})
	s.expect(t, metav1.ConditionTrue, "3 nodes are full")
	s.Waits(
		s.group,
		explanation.Incomplete,
		"1 of the 4 members that it needs are lost",
		standing.Turn{},
	) // at once: the clock stands still
	s.expect(t, metav1.ConditionTrue, "1 of the 4 members that it needs are lost")
	s.Queued(s.group, standing.Turn{Position: 3})
	s.expect(t, metav1.ConditionTrue, explanation.NotAsked)
	s.Waits(s.group, explanation.NoRoom, "4 nodes are full", standing.Turn{})
	s.expect(t, metav1.ConditionTrue, "4 nodes are full")
	before := s.writes()
	s.Queued(s.group, standing.Turn{Position: 2})
	time.Sleep(50 * time.Millisecond) // queued notes are written
	if n := s.writes() - before; n != 0 {
		t.Errorf("%d writes replace what is known by less", n)
	}
}
