package gangplacement_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// launcher returns the late member of a gang: its announcement, and its pod.
func launcher(t *testing.T, gang string) (announced string, comes *corev1.Pod) {
	t.Helper()
	comes = schedulertest.Pod(gang+"-launcher", "1")
	comes.Labels = map[string]string{"role": "launcher"}
	comes.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &gang}
	text, err := json.Marshal([]corev1.PodTemplateSpec{{
		ObjectMeta: metav1.ObjectMeta{Name: comes.Name, Labels: comes.Labels},
		Spec:       corev1.PodSpec{Containers: comes.Spec.Containers},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text), comes
}

// Workers take 12 of the 16 GPUs of a clique, the launcher that arrives later needs one. Fifteen are taken when it
// arrives.
func TestLateMembers_LauncherPlaceIsReserved(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"by the scheduler that placed the others": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
			group, workers := schedulertest.Gang("mpi", 3, "clique")
			text, late := launcher(t, "mpi")
			group.Annotations[topology.AnnotationLateMembers] = text
			c.Create(t, group, workers)
			c.WaitBound(t, workers)
			if restart {
				c.Restart(t)
			}
			// A gang is evaluated first: this makes a scheduler that starts remember the slots that it holds.
			greedy, four := schedulertest.Gang("greedy", 1, "clique")
			c.Create(t, greedy, four)
			c.WaitRejected(t, "greedy")
			var singles []*corev1.Pod
			for i := range 4 {
				singles = append(singles, schedulertest.Pod(fmt.Sprint("single-", i), "1"))
			}
			c.Create(t, singles[:3])
			c.WaitBound(t, singles[:3])
			c.Create(t, singles[3])
			time.Sleep(time.Second) // in which it is tried more than once
			if at := c.NodeOf(singles[3].Name); at != "" {
				t.Fatalf("a single pod took the launcher's place on %s", at)
			}
			c.Create(t, late)
			c.WaitBound(t, []*corev1.Pod{late})
		})
	}
}

// A launcher that never arrives holds its place against gangs of its own priority, and not against one that could have
// its gang evicted: members that are not there must not hold nodes for an hour against all others.
func TestLateMembers_LauncherPlaceYieldsToPriority(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	group, workers := schedulertest.Gang("mpi", 3, "clique")
	group.Annotations[topology.AnnotationLateMembers], _ = launcher(t, "mpi")
	c.Create(t, group, workers)
	c.WaitBound(t, workers)
	peer, waits := schedulertest.Gang("peer", 1, "clique")
	c.Create(t, peer, waits)
	c.WaitRejected(t, "peer")
	urgent, members := schedulertest.Gang("urgent", 1, "clique")
	schedulertest.SetPriority(urgent, members, 10)
	c.Create(t, urgent, members)
	c.WaitBound(t, members)
	c.WaitBound(t, workers) // none of them was evicted
	c.ExpectUnbound(t, waits)
}

// A scheduler that starts after the job has ended reserves no place for its launcher.
func TestLateMembers_EndedJobHoldsNoPlace(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	group, workers := schedulertest.Gang("mpi", 3, "clique")
	group.Annotations[topology.AnnotationLateMembers], _ = launcher(t, "mpi")
	c.Create(t, group, workers)
	c.WaitBound(t, workers)
	c.Stop()
	c.MarkEnded(t, "mpi")
	c.Start(t)
	one, member := schedulertest.Gang("one", 1, "clique")
	c.Create(t, one, member)
	c.WaitBoundFor(t, member, 20*time.Second)
}

// Four workers take all of the clique. Without a place for the launcher, for which they would wait, they do not start.
func TestLateMembers_GangWaitsForLauncherPlace(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	group, workers := schedulertest.Gang("mpi", 4, "clique")
	text, _ := launcher(t, "mpi")
	group.Annotations[topology.AnnotationLateMembers] = text
	c.Create(t, group, workers)
	if why := c.WaitRejected(t, "mpi"); !strings.Contains(why, "needs 5 members in one clique") {
		t.Errorf("the gang is told %q", why)
	}
	for _, w := range workers {
		if at := c.NodeOf(w.Name); at != "" {
			t.Errorf("%s is on %s", w.Name, at)
		}
	}
}

// A late member that cannot be read makes its gang wait.
func TestLateMembers_MalformedListIsExplained(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	group, members := schedulertest.Gang("wrong", 2, "clique")
	group.Annotations[topology.AnnotationLateMembers] = `{"name":"launcher"}`
	c.Create(t, group, members)
	why, want := c.WaitRejected(t, "wrong"), topology.AnnotationLateMembers+" must be a JSON list"
	if !strings.Contains(why, want) {
		t.Errorf("the gang is told %q", why)
	}
}
