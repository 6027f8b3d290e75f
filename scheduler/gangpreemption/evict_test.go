//go:build !race

package gangpreemption_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// slowServer does not answer requests that write a pod's deadline until it is released. Other requests do not wait: a
// reactor of the fake client would hold up all calls.
type slowServer struct {
	*fake.Clientset

	told    atomic.Int64
	answers chan struct{}
}

func (s *slowServer) CoreV1() typed.CoreV1Interface { return slowCore{s.Clientset.CoreV1(), s} }

type slowCore struct {
	typed.CoreV1Interface

	of *slowServer
}

func (c slowCore) Pods(namespace string) typed.PodInterface {
	return slowPods{c.CoreV1Interface.Pods(namespace), c.of}
}

type slowPods struct {
	typed.PodInterface

	of *slowServer
}

func (p slowPods) Patch(
	ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, parts ...string,
) (*corev1.Pod, error) {
	if strings.Contains(string(data), topology.AnnotationCheckpointDeadline) {
		p.of.told.Add(1)
		select {
		case <-p.of.answers:
		case <-ctx.Done():
		}
	}
	return p.PodInterface.Patch(ctx, name, kind, data, options, parts...)
}

// Until its victims have left a gang is evaluated again and again, and each answer would evict them. Every eviction is
// begun once: otherwise the load of a slow server grows as it slows down.
func TestEvict_SlowServerGetsOneRequest(t *testing.T) {
	s := schedulertest.NewFullFleet(4)
	c := schedulertest.NewUnstartedCluster(t, s.Objects())
	server := &slowServer{Clientset: c.Clientset, answers: make(chan struct{})}
	c.StartFor(t, server)
	high, members := schedulertest.Gang("high", 4, "clique")
	schedulertest.SetPriority(high, members, 1_001_000)
	before := schedulertest.Metric(t, "lockstep_scheduler_preempted_gangs_total", "")
	c.Create(t, high, members)
	c.WaitNominated(t, members)
	time.Sleep(7 * time.Second)
	if told := server.told.Load(); told != 4 {
		t.Errorf("four pods were told %d times until when they have time", told)
	}
	if n := schedulertest.Metric(t, "lockstep_scheduler_preempted_gangs_total", "") - before; n != 1 {
		t.Errorf("one gang leaves, and %v are counted", n)
	}
	close(server.answers)
	c.WaitBound(t, members)
}
