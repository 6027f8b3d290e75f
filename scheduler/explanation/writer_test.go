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

	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// recorder keeps whom events are about and what they say.
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
			Namespace: "ns", Name: "train", UID: "1",
			OwnerReferences: []metav1.OwnerReference{{Kind: "TrainJob", Name: "train", Controller: &yes}},
		}},
	}
	s.client = fake.NewClientset(s.group)
	s.Writer = explanation.NewWriter(t.Context(), s.client, s.recorder, timing.With(s.clock))
	return s
}

// condition waits until the condition says the text.
func (s *stage) expect(t *testing.T, status metav1.ConditionStatus, message string) {
	t.Helper()
	var last *metav1.Condition
	for range 500 {
		g, err := s.client.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), "train", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last = apimeta.FindStatusCondition(g.Status.Conditions, explanation.Condition)
		if last != nil && last.Status == status && last.Message == message {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("condition is %+v, want %s %q", last, status, message)
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

func TestAGangIsToldOnceAMinuteAndOnlyNews(t *testing.T) {
	s := newStage(t)
	s.Goes(s.group) // it never waited: nothing to say
	s.Waits(s.group, explanation.NoRoom, "needs 16 members; nearest rack-3: 14 of 16; 300 nodes without room")
	s.expect(t, metav1.ConditionTrue, "needs 16 members; nearest rack-3: 14 of 16; 300 nodes without room")

	// A number changed, but not its order of magnitude.
	s.Waits(s.group, explanation.NoRoom, "needs 16 members; nearest rack-2: 13 of 16; 301 nodes without room")
	s.clock.Step(2 * time.Minute)
	if n := s.writes(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}

	// News is told at once after a quiet minute; what follows waits for the minute to pass, and only the last is told.
	s.Waits(s.group, explanation.NoRoom, "needs 16 members; nearest rack-3: 2 of 16; 300 nodes without room")
	s.expect(t, metav1.ConditionTrue, "needs 16 members; nearest rack-3: 2 of 16; 300 nodes without room")
	s.Waits(s.group, explanation.NoRoom, "needs 16 members; nearest rack-3: 0 of 16; 300 nodes without room")
	s.Waits(s.group, explanation.WrongRequest, "there is no such level")
	s.clock.Step(59 * time.Second)
	if n := s.writes(); n != 2 {
		t.Errorf("%d writes within the minute, want 2", n)
	}
	s.clock.Step(time.Second)
	s.expect(t, metav1.ConditionTrue, "there is no such level")

	// That it goes is told at once.
	s.Goes(s.group)
	s.expect(t, metav1.ConditionFalse, "the gang has its nodes")
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	want := "TrainJob train: needs 16 members; nearest rack-3: 14 of 16; 300 nodes without room"
	if len(s.recorder.said) != 3 || s.recorder.said[0] != want {
		t.Errorf("events %q", s.recorder.said)
	}
}

// If the API server is slow, what cannot wait in the queue is told later, not never.
func TestNothingIsLostWhenTheServerIsSlow(t *testing.T) {
	s := newStage(t)
	open := make(chan struct{})
	s.client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-open
		return false, nil, nil
	})
	for i := range 2000 {
		other := s.group.DeepCopy()
		other.Name, other.UID, other.OwnerReferences = fmt.Sprint("other-", i), types.UID(fmt.Sprint("other-", i)), nil
		s.Waits(other, explanation.NoRoom, "needs 16 members")
	}
	s.Waits(s.group, explanation.NoRoom, "needs 16 members")
	close(open)
	for s.writes() < 1024 {
		time.Sleep(10 * time.Millisecond)
	}
	s.clock.Step(time.Minute)
	s.expect(t, metav1.ConditionTrue, "needs 16 members")
}

// That others are asked first is said of a gang of which nothing is known, and gives way to the first answer.
func TestAnAnswerTakesThePlaceOfTheQueueAtOnce(t *testing.T) {
	s := newStage(t)
	s.Queued(s.group)
	s.expect(t, metav1.ConditionTrue, "others are before it, and are asked first")
	s.Waits(s.group, explanation.NoRoom, "3 nodes are full")
	s.expect(t, metav1.ConditionTrue, "3 nodes are full")
	s.Queued(s.group)
	s.Waits(s.group, explanation.NoRoom, "3 nodes are full")
	s.expect(t, metav1.ConditionTrue, "3 nodes are full")
	if n := s.writes(); n != 2 {
		t.Errorf("%d writes, want 2", n)
	}
}
