package incompletegangs_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/lockstep-project/lockstep/scheduler/metrics"
)

// held reads the accelerator-seconds that incomplete gangs have held.
func held(t *testing.T) float64 {
	t.Helper()
	metrics.Register()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "lockstep_scheduler_incomplete_gang_device_seconds_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("there is no such metric")
	return 0
}

// Two members hold four accelerators each for half a minute until the third has its node, and again for ten seconds
// after it was lost.
func TestWatch_MetersIncompleteGangs(t *testing.T) {
	pods := fresh()
	for _, pod := range pods {
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")},
		}}}
	}
	bubble(t, pods, func(t *testing.T, h *handle) {
		t.Helper()
		before := held(t)
		h.bind(t, "m0", "m1")
		time.Sleep(30 * time.Second)
		h.bind(t, "m2")
		time.Sleep(time.Hour)
		h.delete(t, "m2")
		time.Sleep(10 * time.Second)
		h.bind(t, "m3")
		if got := held(t) - before; got != 2*4*40 {
			t.Errorf("the incomplete gang held %v accelerator-seconds, want %d", got, 2*4*40)
		}
	})
}
