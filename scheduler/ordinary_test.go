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
