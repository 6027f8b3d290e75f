package gangplacement_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// mixed is a fleet and gangs that wait for it: some fit, some do not, each in its own way.
func mixed() []runtime.Object {
	objects := schedulertest.Objects(schedulertest.Cliques(6, 8)...)
	for i, p := range []string{schedulertest.NodeName(1, 3), schedulertest.NodeName(2, 0), schedulertest.NodeName(2, 5), schedulertest.NodeName(4, 7)} {
		user := schedulertest.ServicePod(fmt.Sprint("user-", i), p, nil)
		schedulertest.SetRequest(user, schedulertest.GPU, "2")
		objects = append(objects, user)
	}
	for i, wish := range []struct {
		size  int
		gpus  string
		wants map[string]string
	}{
		{7, "4", map[string]string{topology.AnnotationRequiredTopology: "clique"}},
		{9, "4", map[string]string{topology.AnnotationRequiredTopology: "clique"}},
		{10, "2", nil},
		{6, "4", map[string]string{topology.AnnotationSpreadMax: "2", topology.AnnotationSpreadTopology: "clique"}},
		{5, "1", map[string]string{topology.AnnotationRequiredTopology: "clique"}},
		{8, "4", map[string]string{topology.AnnotationSegmentSize: "4", topology.AnnotationSegmentTopology: "clique"}},
		{4, "4", map[string]string{topology.AnnotationCommunication: "all-to-all"}},
	} {
		group, members := schedulertest.GangWith(
			fmt.Sprint("gang-", i),
			wish.size,
			"",
			func(p *corev1.Pod) { schedulertest.SetRequest(p, schedulertest.GPU, wish.gpus) },
		)
		group.Annotations = wish.wants
		schedulertest.SetQueuedAt(group, 20-i)
		objects = append(append(objects, group), schedulertest.Objects(members...)...)
	}
	return objects
}

// digest says where every pod is, in an order that says nothing else.
func digest(c *schedulertest.Cluster) string {
	var lines []string
	for p, at := range c.Bindings() {
		lines = append(lines, p+" "+at)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// digestOf is the digest once that many pods are bound.
func digestOf(t *testing.T, c *schedulertest.Cluster, bound int) string {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return strings.Count(digest(c), "\n")+1 >= bound, nil })
	if err != nil {
		t.Fatalf("fewer than %d pods were bound: %s", bound, digest(c))
	}
	return digest(c)
}

func shuffled(objects []runtime.Object, seed uint64) []runtime.Object {
	rand.New(rand.NewPCG(seed, 7)).Shuffle(len(objects), func(i, j int) {
		objects[i], objects[j] = objects[j], objects[i]
	})
	return objects
}

func TestGangPlacement_SameSnapshotSameResult(t *testing.T) {
	t.Parallel()
	const bound = 40 // all gangs but the one of nine in a clique of eight
	first := digestOf(t, schedulertest.NewCluster(t, shuffled(mixed(), 0)), bound)
	for seed := range uint64(9) {
		if got := digestOf(t, schedulertest.NewCluster(t, shuffled(mixed(), seed+1)), bound); got != first {
			t.Fatalf("in order %d the pods are on\n%s\nand not on\n%s", seed+1, got, first)
		}
	}
}

// The same where the filters refused the plan, so that the framework chooses.
func TestGangPlacement_SameResultAfterRefusal(t *testing.T) {
	t.Parallel()
	objects := func() []runtime.Object {
		noisy := schedulertest.ServicePod("noisy", schedulertest.NodeName(0, 2), map[string]string{"app": "noisy"})
		group, members := schedulertest.GangWith("avoids", 5, "clique", schedulertest.AvoidApp("noisy"))
		return slices.Concat(
			schedulertest.Objects(schedulertest.Cliques(1, 8)...),
			schedulertest.Objects(noisy),
			schedulertest.Objects(group),
			schedulertest.Objects(members...),
		)
	}
	first := digestOf(t, schedulertest.NewCluster(t, shuffled(objects(), 0)), 5)
	for seed := range uint64(9) {
		if got := digestOf(t, schedulertest.NewCluster(t, shuffled(objects(), seed+1)), 5); got != first {
			t.Fatalf("in order %d the pods are on\n%s\nand not on\n%s", seed+1, got, first)
		}
	}
}
