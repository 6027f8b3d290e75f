package waiting_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// An entity that starts has a cycle of its own, with the outcome that it had in the cycle of another one. Until then no
// other one is evaluated.
func TestQueue_OneThatStartsHasItsOwnCycle(t *testing.T) {
	s := newScheduler(t)
	s.turn(t, "large", 8, 3)
	s.turn(t, "small", 2, 2)
	s.turn(t, "smaller", 1, 1)
	s.pass(time.Minute)
	if err := s.node.RemovePod(klog.Background(), podOf("filler", 8)); err != nil {
		t.Fatal(err)
	}
	s.node.AddPod(podOf("other", 4))
	s.Changed()
	s.pass(60 * time.Millisecond)
	s.turn(t, "large", 8, 3)
	s.woken = nil
	if out, waits := s.Consider(s.question(t, s.follows(), 2, 2)); waits || out.Placed == nil {
		t.Fatalf("it waits: %+v", out.Wait)
	}
	if !slices.Equal(s.woken, []string{"small"}) || s.keeps("small") {
		t.Errorf("%v are woken", s.woken)
	}
	if got := s.follows(); got != "" {
		t.Errorf("%s is evaluated before it has started", got)
	}
	if !s.turn(t, "smaller", 1, 1).Deferred {
		t.Error("a later one is evaluated before it has started")
	}
	if out := s.turn(t, "small", 2, 2); out.Placed == nil {
		t.Errorf("it waits in its own cycle: %+v", out.Wait)
	}
	s.woken = nil
	s.Started(id("small"), []string{"n"})
	if !slices.Equal(s.woken, []string{"smaller"}) {
		t.Errorf("%v are woken when it has started", s.woken)
	}
}

// An outcome that was decided in the cycle of another gang is decided anew if something happens before its own cycle:
// nothing that the first decision asked for has been done.
func TestQueue_DoubtfulOutcomeIsDecidedAnew(t *testing.T) {
	happens := map[string]func(*scheduler){
		"a pod of another scheduler": func(s *scheduler) { s.Taken("n") },
		"a node goes away": func(s *scheduler) {
			away := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "other"},
				Spec:       corev1.NodeSpec{Unschedulable: true},
			}
			s.Node(away)
		},
		"time passes":        func(s *scheduler) { s.clock.Step(200 * time.Millisecond) },
		"another is evicted": func(s *scheduler) { s.Evicting(nil) },
	}
	for name, event := range happens {
		t.Run(name, func(t *testing.T) {
			s := newScheduler(t)
			s.turn(t, "large", 16, 3) // no node has as many
			preemptor := s.question(t, "preemptor", 8, 2)
			preemptor.Group.Spec.Priority = ptr.To[int32](1_000_005)
			if out, waits := s.Consider(preemptor); waits || len(out.Preempted) != 1 {
				t.Fatalf("it preempts nothing: %+v", out)
			}
			event(s)
			if out := s.Turn(preemptor); len(out.Preempted) != 1 {
				t.Errorf("the victims stay: %+v", out)
			}
		})
	}
}

// Pods that another scheduler binds to nodes without a lease do not keep others from being evaluated.
func TestQueue_ForeignPodsElsewhereDelayNoEntity(t *testing.T) {
	s := newScheduler(t)
	s.turn(t, "large", 8, 3)
	s.turn(t, "small", 2, 2)
	s.pass(time.Minute)
	s.Changed()
	s.pass(60 * time.Millisecond)
	s.turn(t, "large", 8, 3)
	s.Taken("elsewhere")
	if got := s.follows(); got != "small" {
		t.Errorf("%q is evaluated next", got)
	}
}

// The scheduling queue orders those that enter it at one instant by when they are due, before any of them was
// evaluated: of two gangs of the same age the one that runs for an hour is due three minutes later, and the one without
// an end as if it ran a day.
func TestQueue_DecidesTheOrderOfThoseThatEnter(t *testing.T) {
	s := newScheduler(t)
	s.SetDiscipline("any", contention.Promise())
	unsaid, short := s.question(t, "unsaid", 1, 1), s.question(t, "short", 1, 1)
	short.Group.Annotations = map[string]string{
		topology.AnnotationExpectedEnd: s.clock.Now().Add(time.Hour).Format(time.RFC3339),
	}
	since := short.Group.CreationTimestamp.Time
	due := func(of string, since time.Time) time.Time {
		return s.DecidedOrder(id(of), contention.Order{Since: since}).Due
	}
	if got := due("short", since); !got.IsZero() {
		t.Errorf("due at %v before it enters", got)
	}
	for of, want := range map[*waiting.Question]time.Duration{short: 3 * time.Minute, unsaid: 72 * time.Minute} {
		s.Gates(of.Group, of.Waiting[0])
		if got := due(of.Group.Name, since); !got.Equal(since.Add(want)) {
			t.Errorf("%s is due at %v, want %v after %v", of.Group.Name, got, want, since)
		}
		if got := due(of.Group.Name, since.Add(time.Second)); !got.IsZero() {
			t.Errorf("%s is due at %v as of another instant", of.Group.Name, got)
		}
	}
}
