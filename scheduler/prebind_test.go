package scheduler_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// A member whose devices cannot be had fails ten times; until they can, no member of its gang is bound.
func TestPreBind_NoMemberBoundBeforeAllCan(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(2, 6))
	x := &trouble{cluster: c, fails: map[string]int{}}
	config, registry := schedulertest.Config(t), schedulertest.Registry(clock.RealClock{})
	schedulertest.PrependPlugin(config, registry, x)
	c.StartScheduler(t.Context(), t, c, config, registry)
	group, members := schedulertest.Gang("troubled", 6, "clique")
	x.fails[members[3].Name] = 10
	c.Create(t, group, members)
	c.WaitBoundFor(t, members, time.Minute)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fails[members[3].Name] != 0 || len(x.early) > 0 {
		t.Errorf("it failed %d times less than it should; bound meanwhile: %v", x.fails[members[3].Name], x.early)
	}
}

// trouble is a PreBind plugin that fails some pods some times, like a device whose allocation cannot be written.
type trouble struct {
	cluster *schedulertest.Cluster
	mu      sync.Mutex
	fails   map[string]int
	// early are pods that were bound while one of their gang was failing.
	early []string
}

func (*trouble) Name() string { return "Trouble" }

func (*trouble) PreBindPreFlight(
	context.Context, fwk.CycleState, *corev1.Pod, string,
) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

func (x *trouble) PreBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fails[pod.Name] == 0 {
		return nil
	}
	x.fails[pod.Name]--
	for name := range x.cluster.Bindings() {
		x.early = append(x.early, name)
	}
	return fwk.AsStatus(errors.New("the claim's status could not be written"))
}
