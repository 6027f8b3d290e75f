//go:build !race

package gangqueue_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// A gang of four fills its clique, and a gang of one waits. The end of a member decides whether the other gets its node
// within two seconds.
func TestGangQueue_PlacesOfLostMembers(t *testing.T) {
	type happens func(t *testing.T, c *schedulertest.Cluster, members []*corev1.Pod)
	end := func(phase corev1.PodPhase, ranks ...int) happens {
		return func(t *testing.T, c *schedulertest.Cluster, members []*corev1.Pod) {
			t.Helper()
			for _, rank := range ranks {
				endPod(t, c, members[rank].Name, phase)
			}
		}
	}
	remove := func(ranks ...int) happens {
		return func(t *testing.T, c *schedulertest.Cluster, members []*corev1.Pod) {
			t.Helper()
			for _, rank := range ranks {
				c.DeletePods(t, members[rank:rank+1])
			}
		}
	}
	restart := func(phase corev1.PodPhase) happens {
		return func(t *testing.T, c *schedulertest.Cluster, members []*corev1.Pod) {
			t.Helper()
			endPod(t, c, members[1].Name, corev1.PodFailed)
			for _, rank := range []int{0, 2, 3} {
				beginDeletion(t, c, members[rank].Name)
			}
			for _, rank := range []int{0, 2, 3} {
				endPod(t, c, members[rank].Name, phase)
			}
			c.DeletePods(t, members)
		}
	}
	for name, test := range map[string]struct {
		minCount int32
		happens  happens
		starts   bool
	}{
		"a member fails":             {4, end(corev1.PodFailed, 1), false},
		"a member succeeds":          {4, end(corev1.PodSucceeded, 1), true},
		"a surplus member fails":     {3, end(corev1.PodFailed, 1), true},
		"all members fail":           {4, end(corev1.PodFailed, 0, 1, 2, 3), false},
		"a member is deleted":        {4, remove(2), false},
		"all members are taken away": {4, remove(0, 1, 2, 3), true},
		"all members are deleted, and end by a signal": {4, func(t *testing.T, c *schedulertest.Cluster, members []*corev1.Pod) {
			t.Helper()
			for _, member := range members {
				beginDeletion(t, c, member.Name)
			}
			for _, member := range members {
				endPod(t, c, member.Name, corev1.PodFailed)
			}
			c.DeletePods(t, members)
		}, true},
		"a member fails, and the others are stopped":           {4, restart(corev1.PodFailed), false},
		"a member fails, and the others end well when stopped": {4, restart(corev1.PodSucceeded), false},
		"its group is deleted after a failure": {4, func(t *testing.T, c *schedulertest.Cluster, _ []*corev1.Pod) {
			t.Helper()
			endPod(t, c, "runs-1", corev1.PodFailed)
			groups := c.SchedulingV1beta1().PodGroups(schedulertest.Namespace)
			if err := groups.Delete(t.Context(), "runs", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, true},
		"its job ends after the loss": {4, func(t *testing.T, c *schedulertest.Cluster, _ []*corev1.Pod) {
			t.Helper()
			endPod(t, c, "runs-1", corev1.PodFailed)
			c.MarkEnded(t, "runs")
		}, true},
		"a bare member fails that nothing creates again": {4, func(t *testing.T, c *schedulertest.Cluster, _ []*corev1.Pod) {
			t.Helper()
			c.MarkOnLoss(t, "runs", topology.OnLossGone)
			endPod(t, c, "runs-1", corev1.PodFailed)
		}, true},
		"a member of a Job fails beside a bare one": {4, func(t *testing.T, c *schedulertest.Cluster, members []*corev1.Pod) {
			t.Helper()
			c.MarkOnLoss(t, "runs", topology.OnLossGone)
			own(t, c, members[1].Name)
			endPod(t, c, "runs-1", corev1.PodFailed)
		}, false},
		"its job has ended before the loss": {4, func(t *testing.T, c *schedulertest.Cluster, _ []*corev1.Pod) {
			t.Helper()
			c.MarkEnded(t, "runs")
			endPod(t, c, "runs-1", corev1.PodFailed)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
			group, members := schedulertest.Gang("runs", 4, "clique")
			group.Spec.SchedulingPolicy.Gang.MinCount = test.minCount
			c.Create(t, group, members)
			c.WaitBound(t, members)
			waits, one := schedulertest.Gang("waits", 1, "")
			c.Create(t, waits, one)
			c.WaitRejected(t, "waits")
			test.happens(t, c, members)
			if test.starts {
				c.WaitBound(t, one)
				return
			}
			time.Sleep(4 * time.Second)
			c.ExpectUnbound(t, one)
		})
	}
}

// A tenant starts two gangs and takes a member of each away at once, again and again. The places that are reserved for
// the tenant beyond its use are those of one gang, not of all that it can start.
func TestGangQueue_PlacesOfGangsThatHardlyRan(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	for _, name := range []string{"first", "second"} {
		group, members := schedulertest.Gang(name, 2, "clique")
		c.Create(t, group, members)
		c.WaitBound(t, members)
		c.DeletePods(t, members[1:])
	}
	one, member := schedulertest.Gang("one", 1, "")
	c.Create(t, one, member)
	c.WaitBound(t, member)
	other, waits := schedulertest.Gang("other", 1, "")
	c.Create(t, other, waits)
	time.Sleep(3 * time.Second)
	c.ExpectUnbound(t, waits)
}

// own has a Job make a pod.
func own(t *testing.T, c *schedulertest.Cluster, name string) {
	t.Helper()
	pods := c.CoreV1().Pods(schedulertest.Namespace)
	patch := []byte(
		`{"metadata":{"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"j","controller":true}]}}`,
	)
	if _, err := pods.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// beginDeletion deletes a pod that takes its time.
func beginDeletion(t *testing.T, c *schedulertest.Cluster, name string) {
	t.Helper()
	pods := c.CoreV1().Pods(schedulertest.Namespace)
	pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod = pod.DeepCopy()
	now := metav1.Now()
	pod.DeletionTimestamp, pod.Finalizers = &now, []string{"example.com/slow"}
	if err := c.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace); err != nil {
		t.Fatal(err)
	}
}

// endPod ends a pod as a kubelet does.
func endPod(t *testing.T, c *schedulertest.Cluster, name string, phase corev1.PodPhase) {
	t.Helper()
	pods := c.CoreV1().Pods(schedulertest.Namespace)
	pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod = pod.DeepCopy()
	pod.Status.Phase = phase
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
