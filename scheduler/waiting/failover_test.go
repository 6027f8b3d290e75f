//go:build !race

package waiting_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// failover is a full fleet of six nodes and a large gang with a reserved place, when the scheduler changes.
type failover struct {
	*schedulertest.Cluster
	runs  [][]*corev1.Pod
	large []*corev1.Pod
	// singles are pods in no gang; gangs are small ones, by name.
	singles []*corev1.Pod
	gangs   map[string][]*corev1.Pod
}

func newFailover(t *testing.T, size int) *failover {
	t.Helper()
	f := &failover{gangs: map[string][]*corev1.Pod{}}
	objects := schedulertest.Objects(schedulertest.Cliques(1, 6)...)
	for n := range 6 {
		group, members := schedulertest.BoundGang(fmt.Sprint("runs-", n), 0, schedulertest.NodeName(0, n))
		objects = slices.Concat(objects, schedulertest.Objects(group), schedulertest.Objects(members...))
		f.runs = append(f.runs, members)
	}
	f.Cluster = schedulertest.NewCluster(t, objects)
	group, members := schedulertest.Gang("large", size, "")
	schedulertest.SetQueuedAt(group, 1)
	f.large = members
	f.Create(t, group, f.large)
	f.WaitRejected(t, "large")
	return f
}

// come creates a small gang and a pod.
func (f *failover) come(t *testing.T, n int) {
	t.Helper()
	name := fmt.Sprint("small-", n)
	group, members := small(name, 10+n)
	single := schedulertest.Pod(fmt.Sprint("single-", n), "1")
	single.Spec.RestartPolicy = corev1.RestartPolicyNever
	f.gangs[name], f.singles = members, append(f.singles, single)
	f.Create(t, single, group, members)
}

// answered waits until every small gang has its verdict.
func (f *failover) answered(t *testing.T) {
	t.Helper()
	for name, members := range f.gangs {
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				if f.NodeOf(members[0].Name) != "" {
					return true, nil
				}
				g, err := f.SchedulingV1beta1().PodGroups(schedulertest.Namespace).Get(ctx, name, metav1.GetOptions{})
				return err == nil && apimeta.IsStatusConditionTrue(g.Status.Conditions, explanation.Condition), err
			})
		if err != nil {
			t.Fatalf("nothing is said of %s: %v", name, err)
		}
	}
}

// A scheduler ends and another one starts, while a gang ends and small gangs and pods arrive that would take its place,
// in any order. The large gang, which was first, gets all of the fleet, or half of it, as soon as those have ended that
// ran.
func TestFailover_ReservedPlaceSurvives(t *testing.T) {
	for _, size := range []int{6, 3} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%d nodes, seed %d", size, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, uint64(size)))
				f := newFailover(t, size)
				ends := r.Perm(len(f.runs))
				happens := []func(){
					func() { f.DeletePods(t, f.runs[ends[0]]) },
					func() { f.come(t, 0) }, func() { f.come(t, 1) }, func() { f.come(t, 2) },
				}
				r.Shuffle(len(happens), func(i, j int) { happens[i], happens[j] = happens[j], happens[i] })
				stops := r.IntN(len(happens) + 1)
				starts := stops + r.IntN(len(happens)+1-stops)
				for i := range len(happens) + 1 {
					if i == stops {
						f.Stop()
					}
					if i == starts {
						f.Start(t)
					}
					if i < len(happens) {
						happens[i]()
					}
				}
				f.answered(t)
				for i, n := range ends[1:] {
					f.come(t, 10+i)
					f.DeletePods(t, f.runs[n])
				}
				f.WaitBound(t, f.large)
				if size == len(f.runs) {
					f.ExpectUnbound(t, f.singles)
				}
			})
		}
	}
}

// leasing returns a cluster of four nodes, three of them used for an hour, and a gang that waits for all four. Its
// lease has been written.
func leasing(t *testing.T) (c *schedulertest.Cluster, large []*corev1.Pod, why string) {
	t.Helper()
	objects := schedulertest.Objects(schedulertest.Cliques(1, 4)...)
	for n := 1; n < 4; n++ {
		group, members := schedulertest.BoundGang(fmt.Sprint("runs-", n), 0, schedulertest.NodeName(0, n))
		objects = slices.Concat(
			objects,
			schedulertest.Objects(schedulertest.SetExpectedEnd(group, time.Hour)),
			schedulertest.Objects(members...),
		)
	}
	c = schedulertest.NewCluster(t, objects)
	group, large := schedulertest.Gang("large", 4, "clique")
	c.Create(t, group, large)
	why = c.WaitRejected(t, "large")
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			_, err := c.CoreV1().
				ConfigMaps("lockstep-system").
				Get(ctx, "lockstep-scheduler-leases", metav1.GetOptions{})
			return err == nil, nil
		})
	if err != nil {
		t.Fatal("the leases were not written")
	}
	return c, large, why
}

// The lease of a gang outlives its scheduler: place, instant and budget are those of before.
func TestStore_LeasesOutliveTheScheduler(t *testing.T) {
	t.Parallel()
	c, _, before := leasing(t)
	c.Restart(t)
	short, passes := small("short", 10)
	c.Create(t, schedulertest.SetExpectedEnd(short, 10*time.Minute), passes)
	c.WaitBound(t, passes)
	if after := c.WaitRejected(t, "large"); after != before {
		t.Errorf("it waits for %q, and for %q before", after, before)
	}
	long, waits := small("long", 11)
	c.Create(t, schedulertest.SetExpectedEnd(long, 2*time.Hour), waits)
	c.WaitRejected(t, "long")
	c.ExpectUnbound(t, waits)
}

// A gang is deleted while no scheduler runs. The next scheduler does not keep its nodes.
// (Package simulator/faults, seed 1486.)
func TestStore_LeasesOfWhoIsGone(t *testing.T) {
	t.Parallel()
	c, large, _ := leasing(t)
	c.Stop()
	c.DeletePods(t, large)
	err := c.SchedulingV1beta1().PodGroups(schedulertest.Namespace).Delete(t.Context(), "large", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Start(t)
	long, starts := small("long", 11)
	c.Create(t, schedulertest.SetExpectedEnd(long, 2*time.Hour), starts)
	c.WaitBound(t, starts)
}
