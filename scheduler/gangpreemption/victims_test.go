//go:build !race

package gangpreemption_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// protects is a budget that allows no disruption of pods with the label.
func protects(label, value string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: value, Namespace: schedulertest.Namespace},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
		},
	}
}

func unchanged(*corev1.Pod) {}

// The victims are those that lose least, and the domain follows from that.
func TestVictims_CheapestAreEvicted(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*schedulertest.FullFleet)
		gone []string
	}{
		"all alike: the fewest, and of those the first": {
			set: func(*schedulertest.FullFleet) {}, gone: []string{"low-1-0"},
		},
		"two that saved their work a moment ago, rather than one that did not": {
			set: func(s *schedulertest.FullFleet) {
				for _, name := range []string{"low-0-0", "low-0-2"} {
					schedulertest.SetRunning(s.Groups[name], s.Pods[name], time.Hour, time.Second)
				}
			},
			gone: []string{"low-0-0", "low-0-2"},
		},
		"who started last": {
			set: func(s *schedulertest.FullFleet) {
				schedulertest.SetRunning(s.Groups["low-2-0"], s.Pods["low-2-0"], time.Minute, 0)
			},
			gone: []string{"low-2-0"},
		},
		"whom no budget protects, whatever is lost": {
			set: func(s *schedulertest.FullFleet) {
				schedulertest.SetRunning(s.Groups["low-1-0"], s.Pods["low-1-0"], 100*time.Hour, 0)
				for _, name := range []string{"low-0-0", "low-0-2", "low-2-0"} {
					for _, p := range s.Pods[name] {
						p.Labels["app"] = "kept"
					}
				}
				s.Nodes = append(s.Nodes, protects("app", "kept"))
			},
			gone: []string{"low-1-0"},
		},
		"whom budgets protect, if nobody else is there": {
			set: func(s *schedulertest.FullFleet) {
				for _, pods := range s.Pods {
					for _, p := range pods {
						p.Labels["app"] = "kept"
					}
				}
				s.Nodes = append(s.Nodes, protects("app", "kept"))
			},
			gone: []string{"low-1-0"},
		},
		"one that nothing would create again, too": {
			set: func(s *schedulertest.FullFleet) {
				metav1.SetMetaDataAnnotation(&s.Groups["low-1-0"].ObjectMeta, topology.AnnotationOnLoss, topology.OnLossGone)
			},
			gone: []string{"low-1-0"},
		},
		"never one of the same importance": {
			set: func(s *schedulertest.FullFleet) {
				schedulertest.SetPriority(s.Groups["low-1-0"], s.Pods["low-1-0"], 1_001_000)
				schedulertest.SetPriority(s.Groups["low-2-0"], s.Pods["low-2-0"], 1_002_000)
			},
			gone: []string{"low-0-0", "low-0-2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schedulertest.NewFullFleet(2, 4, 4)
			c.set(s)
			cluster, at := s.Preempt(t, unchanged)
			gone, broken := s.Evicted(t, cluster)
			if !slices.Equal(gone, c.gone) || len(broken) > 0 {
				t.Errorf("gone are %v, want %v; %v lost a part", gone, c.gone, broken)
			}
			clique := strings.Split(c.gone[0], "-")[1]
			if !strings.HasPrefix(at[0], "c"+clique+"-") {
				t.Errorf("the gang is on %v, want clique %s", at, clique)
			}
		})
	}
}

// A gang that a policy makes wait waits, and no unit leaves for a gang that would not fit even then.
func TestPreemption_EvictsNothingWithoutResult(t *testing.T) {
	never := corev1.PreemptNever
	for name, c := range map[string]struct {
		size   int
		change func(*corev1.Pod)
	}{
		"preemptionPolicy Never":           {4, func(p *corev1.Pod) { p.Spec.PreemptionPolicy = &never }},
		"larger than any clique":           {5, unchanged},
		"a node that does not exist":       {4, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"is": "nowhere"} }},
		"more than the machines ever have": {4, func(p *corev1.Pod) { schedulertest.SetRequest(p, schedulertest.GPU, "8") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schedulertest.NewFullFleet(4, 2)
			cluster := schedulertest.NewCluster(t, s.Objects())
			high, members := schedulertest.GangWith("high", c.size, "clique", c.change)
			schedulertest.SetPriority(high, members, 1_001_000)
			cluster.Create(t, high, members)
			cluster.WaitRejected(t, "high")
			time.Sleep(time.Second)
			if gone, broken := s.Evicted(t, cluster); len(gone)+len(broken) > 0 {
				t.Errorf("%v left, %v in part", gone, broken)
			}
		})
	}
}

// A preempted pod receives its deadline, and the message that it is not at fault, before it is ended.
func TestVictims_GetReasonAndGrace(t *testing.T) {
	t.Parallel()
	s := schedulertest.NewFullFleet(4)
	grace := int64(120)
	for _, p := range s.Pods["low-0-0"] {
		p.Spec.TerminationGracePeriodSeconds = &grace
	}
	c := schedulertest.NewUnstartedCluster(t, s.Objects())
	c.KeepTerminating()
	c.Start(t)
	high, members := schedulertest.Gang("high", 4, "clique")
	schedulertest.SetPriority(high, members, 1_001_000)
	begin := time.Now()
	c.Create(t, high, members)
	c.WaitNominated(t, members)
	for _, p := range s.Pods["low-0-0"] {
		var now *corev1.Pod
		for range 100 {
			var err error
			if now, err = c.CoreV1().
				Pods(schedulertest.Namespace).
				Get(t.Context(), p.Name, metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			if now.DeletionTimestamp != nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		until, err := time.Parse(time.RFC3339, now.Annotations[topology.AnnotationCheckpointDeadline])
		if left := until.Sub(begin); err != nil || left < 115*time.Second || left > 135*time.Second {
			t.Errorf("pod %s has until %v (%v), want two minutes", p.Name, until, err)
		}
		marked := slices.ContainsFunc(now.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
				c.Reason == "PreemptionByScheduler"
		})
		if !marked || now.DeletionTimestamp == nil {
			t.Errorf("pod %s: conditions %v, deletion %v", p.Name, now.Status.Conditions, now.DeletionTimestamp)
		}
	}
	c.RemovePods(t, s.Pods["low-0-0"])
	c.WaitBound(t, members)
}

// The first of the queue waits for all of a clique, half of it held by its equals, and has its place there. A later
// gang could evict the less important half, and would then not get it: so no unit leaves. A gang that waits for a place
// that is not reserved does evict it.
//
//	c0: two nodes equal, two low     first: all four     second: two
func TestPreemption_EvictsNothingForLeasedPlace(t *testing.T) {
	for name, first := range map[string]bool{"behind the first": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal, holds := schedulertest.RunningGang(
				"equal",
				"clique",
				schedulertest.NodeName(0, 0),
				schedulertest.NodeName(0, 1),
			)
			schedulertest.SetPriority(equal, holds, 1_001_000)
			low, victims := schedulertest.RunningGang(
				"low",
				"clique",
				schedulertest.NodeName(0, 2),
				schedulertest.NodeName(0, 3),
			)
			c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4), equal, low, holds, victims)
			if first {
				large, four := schedulertest.Gang("large", 4, "clique")
				schedulertest.SetQueuedAt(large, 1)
				schedulertest.SetPriority(large, four, 1_001_000)
				c.Create(t, large, four)
				c.WaitRejected(t, "large")
			}
			second, two := schedulertest.Gang("second", 2, "clique")
			schedulertest.SetQueuedAt(second, 10)
			schedulertest.SetPriority(second, two, 1_001_000)
			c.Create(t, second, two)
			if !first {
				c.WaitBound(t, two)
				return
			}
			c.WaitRejected(t, "second")
			time.Sleep(time.Second)
			for _, p := range victims {
				if _, err := c.CoreV1().
					Pods(schedulertest.Namespace).
					Get(t.Context(), p.Name, metav1.GetOptions{}); err != nil {
					t.Errorf("%s went for nothing: %v", p.Name, err)
				}
			}
		})
	}
}

func TestPreemption_HigherPriorityTakesTheNodes(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	low, victims := schedulertest.Gang("low", 4, "clique")
	c.Create(t, low, victims)
	c.WaitBound(t, victims)

	high, members := schedulertest.Gang("high", 4, "clique")
	priority := int32(1_001_000)
	high.Spec.Priority = &priority
	for _, p := range members {
		p.Spec.Priority = &priority
	}
	c.Create(t, high, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("members by rank are on %v, want %v", got, schedulertest.CliqueNodes(0, 4))
	}
}
