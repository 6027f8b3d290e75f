//go:build !race

package gangpreemption_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// single is a pod in no gang that asks for two of a node's four GPUs, of priority 1,001,000: it evicts whatever that
// loses.
func single(name string, change func(*corev1.Pod)) []*corev1.Pod {
	p := schedulertest.Pod(name, "2")
	p.Spec.Priority = new(int32(1_001_000))
	change(p)
	return []*corev1.Pod{p}
}

// A pod in no gang has the units leave that lose least, as a gang has, wherever they are. Kube-scheduler has the least
// important leave: the gang of priority -10 in all of these. Something else than resources decides about the pod with a
// port: in-tree preemption finds its victims, and has them leave in the same order.
//
//	c0: two gangs of two    c1: four gangs of one
func TestSinglePod_TheCheapestVictimsGo(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(*schedulertest.FullFleet)
		change func(*corev1.Pod)
		gone   []string
	}{
		"who started last": {
			set: func(s *schedulertest.FullFleet) {
				schedulertest.SetRunning(s.Groups["low-1-2"], s.Pods["low-1-2"], time.Minute, 0)
			},
			change: unchanged,
			gone:   []string{"low-1-2"},
		},
		"two that saved their work a moment ago, rather than one that did not": {
			set: func(s *schedulertest.FullFleet) {
				schedulertest.SetRunning(s.Groups["low-0-2"], s.Pods["low-0-2"], time.Hour, time.Second)
			},
			change: unchanged,
			gone:   []string{"low-0-2"},
		},
		"whom no budget protects, whatever is lost": {
			set: func(s *schedulertest.FullFleet) {
				for name, pods := range s.Pods {
					if name == "low-1-3" {
						schedulertest.SetRunning(s.Groups[name], pods, 100*time.Hour, 0)
						continue
					}
					for _, p := range pods {
						p.Labels["app"] = "kept"
					}
				}
				s.Nodes = append(s.Nodes, protects("app", "kept"))
			},
			change: unchanged,
			gone:   []string{"low-1-3"},
		},
		"nobody whose class an administrator protects": {
			set: func(s *schedulertest.FullFleet) {
				s.Nodes = append(s.Nodes, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{
					Name: "kept", Annotations: map[string]string{topology.AnnotationPreemptible: "false"},
				}})
				for _, p := range s.Pods["low-1-2"] {
					p.Spec.PriorityClassName = "kept"
				}
				schedulertest.SetRunning(s.Groups["low-1-2"], s.Pods["low-1-2"], time.Minute, 0)
				schedulertest.SetRunning(s.Groups["low-1-0"], s.Pods["low-1-0"], 2*time.Minute, 0)
			},
			change: unchanged,
			gone:   []string{"low-1-0"},
		},
		"on the nodes to which the pod may go": {
			set: func(*schedulertest.FullFleet) {},
			change: func(p *corev1.Pod) {
				p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: schedulertest.NodeName(1, 3)}
			},
			gone: []string{"low-1-3"},
		},
	} {
		for kind, change := range map[string]func(*corev1.Pod){
			"": unchanged,
			", by a pod with a port": func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80, Protocol: corev1.ProtocolTCP}}
			},
		} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				s := schedulertest.NewFullFleet(2, 1)
				schedulertest.SetPriority(s.Groups["low-1-1"], s.Pods["low-1-1"], -10)
				c.set(s)
				pod := single("high", c.change)
				change(pod[0])
				singleLeaves(t, s, pod, c.gone)
			})
		}
	}
}

// singleLeaves expects that these gangs leave for a pod, whole, and that it runs in their place.
func singleLeaves(t *testing.T, s *schedulertest.FullFleet, pod []*corev1.Pod, want []string) {
	t.Helper()
	cluster := schedulertest.NewCluster(t, s.Objects())
	cluster.Create(t, pod)
	at := cluster.WaitBound(t, pod)
	gone, broken := s.Evicted(t, cluster)
	if !slices.Equal(gone, want) || len(broken) > 0 {
		t.Errorf("gone are %v, want %v; %v lost a part", gone, want, broken)
	}
	was := func(p *corev1.Pod) bool { return p.Spec.NodeName == at[0] }
	if !slices.ContainsFunc(s.Pods[want[0]], was) {
		t.Errorf("the pod is on %s, where none of %v was", at[0], want)
	}
}

// Pods that ask the same do not wait for each other's victims: a service that grows by four has them all leave at once.
func TestSinglePods_PreemptAtOnce(t *testing.T) {
	t.Parallel()
	s := schedulertest.NewFullFleet(1)
	c := schedulertest.NewUnstartedCluster(t, s.Objects())
	c.KeepTerminating()
	c.Start(t)
	var pods []*corev1.Pod
	for _, name := range []string{"high-0", "high-1", "high-2", "high-3"} {
		pods = append(
			pods,
			single(name, func(p *corev1.Pod) { schedulertest.SetRequest(p, schedulertest.GPU, "4") })...)
	}
	c.Create(t, pods)
	nodes := c.WaitNominated(t, pods)
	slices.Sort(nodes)
	if want := schedulertest.CliqueNodes(0, 4); !slices.Equal(nodes, want) {
		t.Errorf("the pods are nominated to %v, want %v", nodes, want)
	}
	for _, victims := range s.Pods {
		c.RemovePods(t, victims)
	}
	c.WaitBound(t, pods)
}

// The place of a pod whose victims have yet to leave is closed to gangs of lower priority, as that of a gang is.
func TestSinglePod_KeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := schedulertest.NewFullFleet(1)
	c := schedulertest.NewUnstartedCluster(t, s.Objects())
	c.KeepTerminating()
	c.Start(t)
	schedulertest.SetRunning(s.Groups["low-0-1"], s.Pods["low-0-1"], time.Minute, 0)
	pod := single("high", unchanged)
	c.Create(t, pod)
	c.WaitNominated(t, pod)
	middle, members := schedulertest.Gang("middle", 1, "")
	schedulertest.SetPriority(middle, members, 0)
	c.Create(t, middle, members)
	c.WaitRejected(t, "middle")
	for _, victims := range s.Pods {
		if at := victims[0].Spec.NodeName; at == c.WaitNominated(t, pod)[0] {
			c.RemovePods(t, victims)
		}
	}
	c.WaitBound(t, pod)
	c.ExpectUnbound(t, members)
}

// A pod that must not preempt does not.
func TestSinglePod_NeverPreempts(t *testing.T) {
	t.Parallel()
	s := schedulertest.NewFullFleet(1)
	c := schedulertest.NewCluster(t, s.Objects())
	pod := single("high", func(p *corev1.Pod) { p.Spec.PreemptionPolicy = new(corev1.PreemptNever) })
	c.Create(t, pod)
	time.Sleep(2 * time.Second)
	if gone, broken := s.Evicted(t, c); len(gone)+len(broken) > 0 {
		t.Errorf("%v left, %v in part", gone, broken)
	}
	c.ExpectUnbound(t, pod)
}

// The place of a lost rank is closed to equals of its gang, not to a pod that might evict the gang. The queue and the
// filters have to agree on that: otherwise the filters refuse places that the queue takes for free, and in-tree
// preemption evicts one gang after another.
func TestSinglePod_UsesThePlaceOfALostRank(t *testing.T) {
	t.Parallel()
	s := schedulertest.NewFullFleet(2)
	s.Groups["low-0-0"].Status.Conditions = []metav1.Condition{
		{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue},
	}
	lost := s.Pods["low-0-0"][1]
	lost.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"},
	}
	c := schedulertest.NewUnstartedCluster(t, s.Objects())
	queue := c.StartWithQueue(t)
	other, waits := schedulertest.Gang("waits", 1, "") // so that the queue has read the running units
	c.Create(t, other, waits)
	c.WaitRejected(t, "waits")
	c.DeletePods(t, []*corev1.Pod{lost})
	for range 200 {
		if len(queue.Leases()) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(queue.Leases()) == 0 {
		t.Fatal("the place of the lost rank is not kept")
	}
	pod := single("high", unchanged)
	c.Create(t, pod)
	if at := c.WaitBound(t, pod); at[0] != schedulertest.NodeName(0, 1) {
		t.Errorf("the pod is on %s, want the place of the lost rank", at[0])
	}
	delete(s.Pods, "low-0-0")
	if gone, broken := s.Evicted(t, c); len(gone)+len(broken) > 0 {
		t.Errorf("%v left, %v in part", gone, broken)
	}
}
