package scheduler_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/flowcontrol"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/gangpermit"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// scale divides the shipped values at which large starts are played.
func scale() int {
	if *long {
		return 1
	}
	return 10
}

// startAtShippedLimits starts a scheduler with the shipped profile, whose client has the profile's own limits. Limits,
// grace and gangs are scaled alike.
func startAtShippedLimits(t *testing.T, c *schedulertest.Cluster) {
	t.Helper()
	config := schedulertest.Config(t)
	limits := config.ClientConnection
	startWithGrace(
		t,
		c,
		c.LimitedClient(limits.QPS/float32(scale()), int(limits.Burst)/scale()),
		config,
		time.Minute/time.Duration(scale()),
	)
}

func startWithGrace(
	t *testing.T,
	c *schedulertest.Cluster,
	client kubernetes.Interface,
	config *schedulerconfig.KubeSchedulerConfiguration,
	grace time.Duration,
) {
	t.Helper()
	for i, args := range config.Profiles[0].PluginConfig {
		if args.Name == gangpermit.Name {
			config.Profiles[0].PluginConfig[i].Args = &runtime.Unknown{Raw: fmt.Appendf(nil, `{"grace":%q}`, grace)}
		}
	}
	c.StartScheduler(t.Context(), t, client, config, schedulertest.Registry(clock.RealClock{}))
}

// A gang of 1,800 or 3,500 members with a claim each starts in one round with the limits that are shipped.
func TestStart_ManyClaims(t *testing.T) {
	for _, shipped := range []int{1800, 3500} {
		t.Run(strconv.Itoa(shipped), func(t *testing.T) {
			size := shipped / scale()
			c := schedulertest.NewUnstartedCluster(t,
				schedulertest.PairedCliques(1, size, 1))
			writes := c.CountWrites()
			startAtShippedLimits(t, c)
			group, members, claims := schedulertest.PairGang("train", size, 1, "gpu")
			for _, claim := range claims {
				if err := c.Tracker().Add(claim); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			c.Create(t, group, members)
			c.WaitBoundFor(t, members, 3*time.Minute)
			made := writes.ByRequest()
			if undone := made["update resourceclaims/status"] + made["patch resourceclaims/status"]; undone > size {
				t.Errorf("%d members took more than one round: %v", size, made)
			}
			t.Logf(
				"%d members with a claim each, at 1/%d of the shipped limits: %v, %v",
				size,
				scale(),
				time.Since(began),
				made,
			)
		})
	}
}

// A gang of ten thousand starts in one round. The client's limits determine the time of its bindings.
func TestStart_TenThousand(t *testing.T) {
	size := 10_000 / scale()
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, size))
	startAtShippedLimits(t, c)
	group, members := schedulertest.Gang("train", size, "")
	c.Create(t, group, members)
	for deadline := time.Now().Add(time.Minute); len(c.Bindings()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no member was bound within a minute")
		}
	}
	first := time.Now()
	c.WaitBoundFor(t, members, 3*time.Minute)
	t.Logf(
		"%d members, at 1/%d of the shipped limits: %v from the first binding to the last",
		size,
		scale(),
		time.Since(first),
	)
	if _, evicted := c.Evictions("train"); len(evicted) > 0 {
		t.Errorf("%d members were evicted", len(evicted))
	}
}

// An API server that takes fifty bindings a second and refuses the others with 429: a gang that gets further is not
// evicted, however long that takes.
func TestStart_BusyServer(t *testing.T) {
	const size, perSecond, grace = 900, 50, 10 * time.Second
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, size))
	busy := flowcontrol.NewTokenBucketRateLimiter(perSecond, perSecond)
	c.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() == "binding" && !busy.TryAccept() {
			return true, nil, apierrors.NewTooManyRequests("too many requests", 1)
		}
		return false, nil, nil
	})
	startWithGrace(t, c, c, schedulertest.Config(t), grace)
	group, members := schedulertest.Gang("train", size, "clique")
	c.Create(t, group, members)
	c.WaitBoundFor(t, members, 5*time.Minute)
	if _, evicted := c.Evictions("train"); len(evicted) > 0 {
		t.Errorf("%d members were evicted while the gang got further", len(evicted))
	}
}

// A member whose device is ready after twice the grace holds the others up, and sends none of them back.
func TestStart_SlowDevice(t *testing.T) {
	const grace = time.Second
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, 4))
	slow := &slowDevice{pod: "train-2", takes: 2 * grace}
	config, registry := schedulertest.Config(t), schedulertest.Registry(clock.RealClock{})
	schedulertest.PrependPlugin(config, registry, slow)
	for i, args := range config.Profiles[0].PluginConfig {
		if args.Name == gangpermit.Name {
			config.Profiles[0].PluginConfig[i].Args = &runtime.Unknown{Raw: fmt.Appendf(nil, `{"grace":%q}`, grace)}
		}
	}
	c.StartScheduler(t.Context(), t, c, config, registry)
	group, members := schedulertest.Gang("train", 4, "clique")
	c.Create(t, group, members)
	c.WaitBound(t, members)
	slow.mu.Lock()
	defer slow.mu.Unlock()
	if slow.began != len(members) {
		t.Errorf("%d preparations for %d members", slow.began, len(members))
	}
}

// slowDevice is a PreBind plugin that takes its time for one pod.
type slowDevice struct {
	trouble

	pod   string
	takes time.Duration
	began int
}

// PreBind waits if the pod is the one.
func (s *slowDevice) PreBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	s.mu.Lock()
	s.began++
	s.mu.Unlock()
	if pod.Name == s.pod {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
		}
	}
	return nil
}
