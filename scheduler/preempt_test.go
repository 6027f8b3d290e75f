package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/topology"
)

// since lets a gang have run for that long, and its trainer have saved its work that long ago; zero for never.
func since(group *schedulingv1beta1.PodGroup, members []*corev1.Pod, ran, saved time.Duration) {
	now := time.Now()
	for _, m := range members {
		started := metav1.NewTime(now.Add(-ran))
		m.Status.Phase, m.Status.StartTime = corev1.PodRunning, &started
	}
	if saved > 0 {
		metav1.SetMetaDataAnnotation(&group.ObjectMeta, topology.AnnotationLastCheckpoint,
			now.Add(-saved).UTC().Format(time.RFC3339))
	}
}

// protects is a budget that lets nobody with the label go.
func protects(label, value string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: value, Namespace: namespace},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
		},
	}
}

// scene is a full cluster of cliques of four nodes. Its gangs are named after their place: clique and first node.
type scene struct {
	objects []runtime.Object
	pods    map[string][]*corev1.Pod
	groups  map[string]*schedulingv1beta1.PodGroup
}

func full(sizes ...int) *scene {
	s := &scene{pods: map[string][]*corev1.Pod{}, groups: map[string]*schedulingv1beta1.PodGroup{}}
	s.objects = as(cliques(len(sizes), 4)...)
	for clique, size := range sizes {
		for first := 0; first < 4; first += size {
			var nodes []string
			for n := range size {
				nodes = append(nodes, nodeName(clique, first+n))
			}
			name := fmt.Sprintf("low-%d-%d", clique, first)
			s.groups[name], s.pods[name] = running(name, 0, nodes...)
			since(s.groups[name], s.pods[name], time.Hour, 0)
		}
	}
	return s
}

// play starts the cluster, lets an important gang of four in one clique come, and returns where it is.
func (s *scene) play(t *testing.T, change func(*corev1.Pod)) (*cluster, []string) {
	t.Helper()
	objects := s.objects
	for name, group := range s.groups {
		objects = append(objects, group)
		objects = slices.Concat(objects, as(s.pods[name]...))
	}
	c := listed(t, objects...)
	high, members := ranked("high", 4, "clique", change)
	raise(high, members, 1000)
	c.add(t, high, members)
	return c, c.waitBound(t, members)
}

// gone are the gangs that lost a pod, and broken those that lost some but not all.
func (s *scene) gone(t *testing.T, c *cluster) (gone, broken []string) {
	t.Helper()
	for name, pods := range s.pods {
		lost := 0
		for _, p := range pods {
			if _, err := c.CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{}); err != nil {
				lost++
			}
		}
		switch {
		case lost == len(pods):
			gone = append(gone, name)
		case lost > 0:
			broken = append(broken, name)
		}
	}
	slices.Sort(gone)
	return gone, broken
}

func unchanged(*corev1.Pod) {}

// The victims are those that lose least, and the domain follows from that.
func TestTheCheapestVictimsGo(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*scene)
		gone []string
	}{
		"all alike: the fewest, and of those the first": {
			set: func(*scene) {}, gone: []string{"low-1-0"},
		},
		"two that saved their work a moment ago, rather than one that did not": {
			set: func(s *scene) {
				for _, name := range []string{"low-0-0", "low-0-2"} {
					since(s.groups[name], s.pods[name], time.Hour, time.Second)
				}
			},
			gone: []string{"low-0-0", "low-0-2"},
		},
		"who started last": {
			set:  func(s *scene) { since(s.groups["low-2-0"], s.pods["low-2-0"], time.Minute, 0) },
			gone: []string{"low-2-0"},
		},
		"whom no budget protects, whatever is lost": {
			set: func(s *scene) {
				since(s.groups["low-1-0"], s.pods["low-1-0"], 100*time.Hour, 0)
				for _, name := range []string{"low-0-0", "low-0-2", "low-2-0"} {
					for _, p := range s.pods[name] {
						p.Labels["app"] = "kept"
					}
				}
				s.objects = append(s.objects, protects("app", "kept"))
			},
			gone: []string{"low-1-0"},
		},
		"whom budgets protect, if nobody else is there": {
			set: func(s *scene) {
				for _, pods := range s.pods {
					for _, p := range pods {
						p.Labels["app"] = "kept"
					}
				}
				s.objects = append(s.objects, protects("app", "kept"))
			},
			gone: []string{"low-1-0"},
		},
		"never one of the same importance": {
			set: func(s *scene) {
				raise(s.groups["low-1-0"], s.pods["low-1-0"], 1000)
				raise(s.groups["low-2-0"], s.pods["low-2-0"], 2000)
			},
			gone: []string{"low-0-0", "low-0-2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := full(2, 4, 4)
			c.set(s)
			cluster, at := s.play(t, unchanged)
			gone, broken := s.gone(t, cluster)
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

// Whoever is told by a policy to wait waits, and nobody leaves for a gang that would not fit even then.
func TestNobodyGoesInVain(t *testing.T) {
	never := corev1.PreemptNever
	for name, c := range map[string]struct {
		size   int
		change func(*corev1.Pod)
	}{
		"preemptionPolicy Never":           {4, func(p *corev1.Pod) { p.Spec.PreemptionPolicy = &never }},
		"larger than any clique":           {5, unchanged},
		"a node that does not exist":       {4, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"is": "nowhere"} }},
		"more than the machines ever have": {4, func(p *corev1.Pod) { asks(p, gpu, "8") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := full(4, 2)
			objects := s.objects
			for name, group := range s.groups {
				objects = append(objects, group)
				objects = slices.Concat(objects, as(s.pods[name]...))
			}
			cluster := listed(t, objects...)
			high, members := ranked("high", c.size, "clique", c.change)
			raise(high, members, 1000)
			cluster.add(t, high, members)
			cluster.waitRejected(t, "high")
			time.Sleep(time.Second)
			if gone, broken := s.gone(t, cluster); len(gone)+len(broken) > 0 {
				t.Errorf("%v left, %v in part", gone, broken)
			}
		})
	}
}

// A pod that is preempted is told how long it has, and that it is not its fault, before it is ended.
func TestVictimsAreTold(t *testing.T) {
	s := full(4)
	grace := int64(120)
	for _, p := range s.pods["low-0-0"] {
		p.Spec.TerminationGracePeriodSeconds = &grace
	}
	objects := slices.Concat(s.objects, as(s.groups["low-0-0"]), as(s.pods["low-0-0"]...))
	c := unstarted(t, objects...)
	c.lingers()
	c.start(t)
	high, members := gang("high", 4, "clique")
	raise(high, members, 1000)
	begin := time.Now()
	c.add(t, high, members)
	c.waitNominated(t, members)
	for _, p := range s.pods["low-0-0"] {
		var now *corev1.Pod
		for range 100 {
			var err error
			if now, err = c.CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{}); err != nil {
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
	c.remove(t, s.pods["low-0-0"])
	c.waitBound(t, members)
}

// The first of the queue waits for all of a clique, half of which equals of it hold, and has its place there. Who comes later could end
// the less important half, and would then not get it: so nobody goes. A gang that waits for nobody's place does end it.
//
//	c0: two nodes equal, two low     first: all four     second: two
func TestNobodyGoesForAPlaceThatIsKept(t *testing.T) {
	for name, first := range map[string]bool{"behind the first": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal, holds := on("equal", "clique", nodeName(0, 0), nodeName(0, 1))
			raise(equal, holds, 1000)
			low, victims := on("low", "clique", nodeName(0, 2), nodeName(0, 3))
			c := listed(t, slices.Concat(
				as(cliques(1, 4)...), []runtime.Object{equal, low}, as(holds...), as(victims...))...)
			if first {
				large, four := gang("large", 4, "clique")
				queuedAt(large, 1)
				raise(large, four, 1000)
				c.add(t, large, four)
				c.waitRejected(t, "large")
			}
			second, two := gang("second", 2, "clique")
			queuedAt(second, 10)
			raise(second, two, 1000)
			c.add(t, second, two)
			if !first {
				c.waitBound(t, two)
				return
			}
			c.waitRejected(t, "second")
			time.Sleep(time.Second)
			for _, p := range victims {
				if _, err := c.CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{}); err != nil {
					t.Errorf("%s went for nothing: %v", p.Name, err)
				}
			}
		})
	}
}
