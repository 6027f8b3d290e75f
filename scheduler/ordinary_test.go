package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Pods in no gang that were refused are tried again when a pod leaves, although the events of bound pods name only those that
// were refused.
func TestGangQueue_RefusedPodIsTriedWhenAPodLeaves(t *testing.T) {
	c := newCluster(t, cliques(1, 2))
	first := []*corev1.Pod{pod("a", "4"), pod("b", "4")}
	c.add(t, first)
	c.waitBound(t, first)
	waiting := []*corev1.Pod{pod("c", "4"), pod("d", "2"), pod("e", "2")}
	c.add(t, waiting)
	time.Sleep(200 * time.Millisecond) // all have been refused
	c.end(t, first)
	c.waitBoundFor(t, waiting, 5*time.Second)
}

// A fleet of more nodes than kube-scheduler looks at for one pod: pods without accelerators still keep off the nodes that have some.
func TestGangPlacement_FewPlainNodesAreFound(t *testing.T) {
	nodes := cliques(30, 6)
	for i := range 3 {
		plain := nodes[i].DeepCopy()
		plain.Name = fmt.Sprint("plain", i)
		plain.Labels = map[string]string{corev1.LabelHostname: plain.Name}
		delete(plain.Status.Allocatable, gpu)
		delete(plain.Status.Capacity, gpu)
		nodes = append(nodes, plain)
	}
	c := newCluster(t, nodes)
	var pods []*corev1.Pod
	for i := range 30 {
		p := pod(fmt.Sprint("service", i), "0")
		delete(p.Spec.Containers[0].Resources.Requests, gpu)
		delete(p.Spec.Containers[0].Resources.Limits, gpu)
		pods = append(pods, p)
	}
	c.add(t, pods)
	for i, node := range c.waitBound(t, pods) {
		if len(node) < 5 || node[:5] != "plain" {
			t.Errorf("%s is on %s, which has accelerators", pods[i].Name, node)
		}
	}
}

// Hundreds of pods that ask for the same wait; eight GPUs come back. The pods that start are tried, and one more, not all of them.
func TestWaiting_SinglePodsWakeOneByOne(t *testing.T) {
	const pods, most = 600, 50
	c := newCluster(t, cliques(1, 2))
	group, members := gang("full", 2, "clique")
	c.add(t, group, members)
	c.waitBound(t, members)
	var waiting []*corev1.Pod
	for i := range pods {
		p := pod(fmt.Sprintf("single-%03d", i), "1")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		waiting = append(waiting, p)
	}
	const attempts = "scheduler_schedule_attempts_total"
	before := counted(t, attempts, "unschedulable")
	c.add(t, waiting)
	c.waitCounted(t, attempts, "unschedulable", before+pods)
	tried := counted(t, attempts, "")
	c.end(t, members)
	deadline := time.Now().Add(20 * time.Second)
	for started := 0; started < 8; {
		started = 0
		for _, p := range waiting {
			if c.nodeOf(p.Name) != "" {
				started++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d pods started, want 8", started)
		}
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(time.Second) // in which others would be tried
	if n := counted(t, attempts, "") - tried; n > most {
		t.Errorf("%v attempts, want at most %d", n, most)
	}
}

// waitCounted waits for a metric.
func (c *cluster) waitCounted(t *testing.T, name, label string, want float64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); counted(t, name, label) < want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is %v, want %v", name, counted(t, name, label), want)
		}
	}
}
