package explanation_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// recorder records the object and the note of each Event.
type recorder struct {
	mu   sync.Mutex
	said []string
}

func (r *recorder) Eventf(about, _ runtime.Object, _, _, _, _ string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref, _ := about.(*corev1.ObjectReference)
	text, _ := args[0].(string)
	r.said = append(r.said, ref.Kind+" "+ref.Name+": "+text)
}

// stage is a writer, an API server with one PodGroup, and a clock that stands still.
type stage struct {
	*explanation.Writer
	client   *fake.Clientset
	clock    *clocktesting.FakeClock
	recorder *recorder
	group    *schedulingv1beta1.PodGroup
}

func newStage(t *testing.T) *stage {
	t.Helper()
	yes := true
	s := &stage{
		clock: clocktesting.NewFakeClock(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)), recorder: &recorder{},
		group: &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns",
			Name:      "train",
			UID:       "1",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "batch/v1", Kind: "Job", Name: "train", Controller: &yes},
			},
		}},
	}
	s.client = fake.NewClientset(s.group)
	s.Writer = explanation.NewWriter(t.Context(), s.client, s.recorder, timing.With(s.clock))
	return s
}

// expect waits until the condition of waiting says the text.
func (s *stage) expect(t *testing.T, status metav1.ConditionStatus, message string) {
	t.Helper()
	s.says(t, explanation.Condition, status, message)
}

// says waits until a condition says the text.
func (s *stage) says(t *testing.T, kind string, status metav1.ConditionStatus, message string) {
	t.Helper()
	var last *metav1.Condition
	for range 500 {
		g, err := s.client.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), "train", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last = apimeta.FindStatusCondition(g.Status.Conditions, kind)
		if last != nil && last.Status == status && last.Message == message {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("condition %s is %+v, want %s %q", kind, last, status, message)
}

// writes counts the patches so far.
func (s *stage) writes() int {
	n := 0
	for _, a := range s.client.Actions() {
		if a.GetVerb() == "patch" {
			n++
		}
	}
	return n
}

func TestWriter_WritesNewsOncePerMinute(t *testing.T) {
	s := newStage(t)
	s.Placed(s.group, nil) // it never waited: nothing to say
	s.Waits(
		s.group,
		explanation.NoRoom,
		"needs 16 members; nearest rack-3: 14 of 16; 300 nodes without room",
		standing.Turn{},
	)
	s.expect(t, metav1.ConditionTrue, "needs 16 members; nearest rack-3: 14 of 16; 300 nodes without room")

	// A number changed, but not its order of magnitude.
	s.Waits(
		s.group,
		explanation.NoRoom,
		"needs 16 members; nearest rack-2: 13 of 16; 301 nodes without room",
		standing.Turn{},
	)
	s.clock.Step(2 * time.Minute)
	if n := s.writes(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}

	// News is written at once after a quiet minute; later news waits for the minute to pass, and only the last is
	// written.
	s.Waits(
		s.group,
		explanation.NoRoom,
		"needs 16 members; nearest rack-3: 2 of 16; 300 nodes without room",
		standing.Turn{},
	)
	s.expect(t, metav1.ConditionTrue, "needs 16 members; nearest rack-3: 2 of 16; 300 nodes without room")
	s.Waits(
		s.group,
		explanation.NoRoom,
		"needs 16 members; nearest rack-3: 0 of 16; 300 nodes without room",
		standing.Turn{},
	)
	s.Waits(s.group, explanation.WrongRequest, "there is no such level", standing.Turn{})
	s.clock.Step(59 * time.Second)
	if n := s.writes(); n != 2 {
		t.Errorf("%d writes within the minute, want 2", n)
	}
	s.clock.Step(time.Second)
	s.expect(t, metav1.ConditionTrue, "there is no such level")

	// The start is written at once.
	s.Placed(s.group, nil)
	s.expect(t, metav1.ConditionFalse, "the gang has its nodes")
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	want := "Job train: needs 16 members; nearest rack-3: 14 of 16; 300 nodes without room"
	if len(s.recorder.said) != 3 || s.recorder.said[0] != want {
		t.Errorf("events %q", s.recorder.said)
	}
}

// If the API server is slow, a note that exceeds the queue is written later, not dropped.
func TestWriter_SlowServerLosesNothing(t *testing.T) {
	s := newStage(t)
	open := make(chan struct{})
	s.client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-open
		return false, nil, nil
	})
	for i := range 2000 {
		other := s.group.DeepCopy()
		other.Name, other.UID, other.OwnerReferences = fmt.Sprint("other-", i), types.UID(fmt.Sprint("other-", i)), nil
		s.Waits(other, explanation.NoRoom, "needs 16 members", standing.Turn{})
	}
	s.Waits(s.group, explanation.NoRoom, "needs 16 members", standing.Turn{})
	close(open)
	for s.writes() < 1024 {
		time.Sleep(10 * time.Millisecond)
	}
	s.clock.Step(time.Minute)
	s.expect(t, metav1.ConditionTrue, "needs 16 members")
}

// A gang without a known state is reported as queued behind others, until the first answer replaces that.
func TestWriter_AnswerReplacesQueuedAtOnce(t *testing.T) {
	s := newStage(t)
	s.Queued(s.group, standing.Turn{})
	s.expect(t, metav1.ConditionTrue, "others are before it, and are asked first")
	s.Waits(s.group, explanation.NoRoom, "3 nodes are full", standing.Turn{})
	s.expect(t, metav1.ConditionTrue, "3 nodes are full")
	s.Queued(s.group, standing.Turn{})
	s.Waits(s.group, explanation.NoRoom, "3 nodes are full", standing.Turn{})
	s.expect(t, metav1.ConditionTrue, "3 nodes are full")
	if n := s.writes(); n != 2 {
		t.Errorf("%d writes, want 2", n)
	}
}

// The conditions by which the owner's controller shows a gang: its position in the queue, and its place.
func TestWriter_StandingIsInConditions(t *testing.T) {
	s := newStage(t)
	turn := standing.Turn{Position: 3}
	s.Waits(s.group, explanation.NoRoom, "no room", turn)
	s.says(t, standing.Queued, metav1.ConditionTrue, turn.String())
	s.says(t, standing.Placed, metav1.ConditionFalse, "the gang waits")

	// A step in the queue is no news; a reserved place is, and its instant, each minute.
	s.Waits(s.group, explanation.NoRoom, "no room", standing.Turn{Position: 2})
	s.clock.Step(time.Minute)
	before := s.writes()
	turn = standing.Turn{Position: 1, Reserved: "rack-1", Start: "2026-11-21T01:00:00Z"}
	s.Waits(s.group, explanation.NoRoom, "no room", turn)
	s.says(t, standing.Queued, metav1.ConditionTrue, turn.String())
	if n := s.writes() - before; n != 1 {
		t.Errorf("%d writes for one piece of news", n)
	}

	place := standing.Place{Nodes: 4, Domain: "rack-1", Quality: 1}
	s.Placed(s.group, &place)
	s.says(t, standing.Placed, metav1.ConditionTrue, place.String())
	s.says(t, standing.Queued, metav1.ConditionFalse, "the gang does not wait")
	s.Placed(s.group, nil)            // its other members
	time.Sleep(50 * time.Millisecond) // queued notes are written
	if n := s.writes() - before; n != 2 {
		t.Errorf("%d writes for a gang of which one member was told already", n)
	}
}

// A gang that starts at once is reported if it has an owner, which shows it.
func TestWriter_ReportsPlaceToOwner(t *testing.T) {
	s := newStage(t)
	place := standing.Place{Nodes: 4, Domain: "rack-1", Quality: 1}
	orphan := s.group.DeepCopy()
	orphan.OwnerReferences = nil
	s.Placed(orphan, &place)
	if n := s.writes(); n != 0 {
		t.Errorf("%d writes about a gang that nobody owns", n)
	}
	s.Placed(s.group, &place)
	s.says(t, standing.Placed, metav1.ConditionTrue, place.String())
}

// evict marks the gang as preempted now, and returns the group as a cache shows it then.
func (s *stage) evict(t *testing.T) *schedulingv1beta1.PodGroup {
	t.Helper()
	mark := eviction.Mark{Now: metav1.NewTime(s.clock.Now()), Reason: "PreemptionByScheduler", Message: "preempted"}
	if err := eviction.MarkGroup(t.Context(), s.client, s.group, mark); err != nil {
		t.Fatal(err)
	}
	s.says(t, schedulingv1beta1.DisruptionTarget, metav1.ConditionTrue, "preempted")
	s.says(t, standing.Placed, metav1.ConditionFalse, "preempted")
	evicted, err := s.client.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return evicted
}

// The condition of an evicted gang is cleared when it has its nodes again, even the same ones, and each time anew. That
// is written once, though its other members are reported while the cache still shows the eviction.
func TestWriter_PlacementClearsEviction(t *testing.T) {
	s := newStage(t)
	place := standing.Place{Nodes: 4, Domain: "rack-1", Quality: 1}
	s.Placed(s.group, &place)
	s.says(t, standing.Placed, metav1.ConditionTrue, place.String())
	for range 2 {
		s.clock.Step(time.Minute)
		evicted := s.evict(t)
		before := s.writes()
		s.Placed(evicted, &place)
		for range 3 {
			s.Placed(evicted, nil) // its other members
		}
		s.says(t, standing.Placed, metav1.ConditionTrue, place.String())
		now, err := s.client.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), "train", metav1.GetOptions{})
		if err != nil || apimeta.FindStatusCondition(now.Status.Conditions, schedulingv1beta1.DisruptionTarget) != nil {
			t.Errorf("%v, %v", now.Status.Conditions, err)
		}
		time.Sleep(50 * time.Millisecond) // queued notes are written
		if n := s.writes() - before; n != 1 {
			t.Errorf("%d writes for a gang of four that was placed again, want 1", n)
		}
	}
}

// A gang that waits after a preemption gets the reason once, not at each attempt.
func TestWriter_PreemptedGangGetsOnlyNews(t *testing.T) {
	s := newStage(t)
	evicted := s.evict(t)
	before := s.writes()
	for range 3 {
		s.Waits(evicted, explanation.NoRoom, "3 nodes are full", standing.Turn{Position: 1})
		s.expect(t, metav1.ConditionTrue, "3 nodes are full")
		s.clock.Step(2 * time.Minute)
	}
	time.Sleep(50 * time.Millisecond) // queued notes are written
	if n := s.writes() - before; n != 1 {
		t.Errorf("%d writes of the same text, want 1", n)
	}
}

// The controller of TrainJobs writes their Events itself.
func TestWriter_NoEventForTrainJob(t *testing.T) {
	s := newStage(t)
	s.group.OwnerReferences[0].APIVersion, s.group.OwnerReferences[0].Kind = "trainer.kubeflow.org/v1alpha1", "TrainJob"
	s.Waits(s.group, explanation.NoRoom, "no room", standing.Turn{})
	s.expect(t, metav1.ConditionTrue, "no room")
	s.Placed(s.group, nil) // written after the Event would have been
	s.expect(t, metav1.ConditionFalse, "the gang has its nodes")
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	if len(s.recorder.said) != 0 {
		t.Errorf("events %q", s.recorder.said)
	}
}
