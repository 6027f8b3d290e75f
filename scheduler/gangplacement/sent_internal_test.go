package gangplacement

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
)

// refusedAt is a pod that the kubelet of a node has refused.
func refusedAt(node, reason string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "refused", UID: "refused"},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason},
	}
}

// oneGroup is a cluster with one PodGroup.
type oneGroup struct{ fwk.PodGroupManager }

func (g oneGroup) PodGroups() fwk.PodGroupLister { return g }

func (oneGroup) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "gang"},
	}, nil
}

// failedAt is a rank that failed on a node at an instant.
func failedAt(name, node string, at time.Time) *corev1.Pod {
	gang := "gang"
	end := corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(at)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{
			NodeName: node, SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &gang},
		},
		Status: corev1.PodStatus{
			Phase:             corev1.PodFailed,
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &end}}},
		},
	}
}

// A scheduler that stands by hears of a failure before it has judged the one that it found at its start: both count, in
// the order in which they happened.
func TestSuspicion_FormerFailuresCountFirst(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	s := newNodeSuspicion(
		clocktesting.NewFakeClock(now), oneGroup{}, nodehealth.Limits{HalfLife: time.Hour, MostPercent: 100}, func() {},
	)
	s.hadEnded(failedAt("before", "n", now.Add(-time.Hour)))
	s.podEnded(failedAt("now", "n", now))
	if node := s.strikes.Avoids("gang"); node != "n" {
		t.Errorf("the gang avoids %q, want n", node)
	}
}

// A tenant creates pods that name their node and ask for more than it has left: their refusals bar the node to no gang.
// Refusals of pods that the scheduler sent there bar it to those of the same namespace.
func TestSuspicion_CountsPodsThatWereSent(t *testing.T) {
	for name, test := range map[string]struct {
		reason   string
		sent     bool
		suspects int
		struck   bool
	}{
		"named its node":              {"OutOfcpu", false, 0, false},
		"named its node, and devices": {"UnexpectedAdmissionError", false, 0, false},
		"was sent":                    {"OutOfcpu", true, 1, false},
		"was sent, and devices":       {"UnexpectedAdmissionError", true, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
			limits := nodehealth.Limits{HalfLife: time.Hour, MostPercent: 100}
			s := newNodeSuspicion(clock, nil, limits, func() {})
			pod := refusedAt("n", test.reason)
			for range 2 {
				if test.sent {
					s.podSent(pod)
					s.podGone(pod) // the watch of pods that have not ended may be the faster one
				}
				s.podEnded(pod)
			}
			if len(s.suspects) != test.suspects {
				t.Errorf("suspected are %v, want %d nodes", s.suspects, test.suspects)
			}
			if struck := len(s.strikes.Quarantined("tenant", 1, clock.Now())) > 0; struck != test.struck {
				t.Errorf("in quarantine for the namespace: %t, want %t", struck, test.struck)
			}
			if len(s.strikes.Quarantined("other", 1, clock.Now())) > 0 {
				t.Error("in quarantine for other namespaces")
			}
		})
	}
}

// A tenant has a kubelet refuse pods that the scheduler sent, by pods that name the node and take the room. Refusals
// that nothing explains bar the node to gangs of the tenant only; one of another namespace besides, to all.
func TestSuspicion_UnexplainedRefusalsAreTheNamespaces(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	s := newNodeSuspicion(clock, nil, nodehealth.Limits{HalfLife: time.Hour, MostPercent: 100}, func() {})
	node := framework.NewNodeInfo()
	node.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	for _, step := range []struct{ namespace, want string }{
		{"tenant", ""}, {"tenant", "tenant"}, {"tenant", "tenant"}, {"second", "tenant second third"},
	} {
		pod := refusedAt("n", "OutOfcpu")
		pod.Namespace = step.namespace
		s.podSent(pod)
		s.podEnded(pod)
		s.barSuspects(nil, []fwk.NodeInfo{node}, clock.Now())
		clock.Step(longestSuspicion)
		s.barSuspects(nil, []fwk.NodeInfo{node}, clock.Now())
		var barred []string
		for _, namespace := range []string{"tenant", "second", "third"} {
			if len(s.strikes.Quarantined(namespace, 1, clock.Now())) > 0 {
				barred = append(barred, namespace)
			}
		}
		if got := strings.Join(barred, " "); got != step.want {
			t.Errorf("after one of %s it is in quarantine for %q, want %q", step.namespace, got, step.want)
		}
	}
}

// Pods that went long ago are forgotten.
func TestSentPods_ForgetsWhatIsGone(t *testing.T) {
	sent, now := newSentPods(), time.Unix(1_000_000, 0)
	sent.add("first")
	sent.add("second")
	sent.remove("first", now)
	sent.remove("unknown", now)
	if !sent.has("first") {
		t.Error("a pod is forgotten before its end is heard of")
	}
	sent.remove("second", now.Add(2*heardWithin))
	if sent.has("first") || !sent.has("second") || len(sent.known) != 1 || len(sent.gone) != 1 {
		t.Errorf("it holds %+v, want the second pod only", sent)
	}
}
