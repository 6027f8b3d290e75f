//go:build !race

package waiting_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// Two profiles of one process wait in one queue, in order, but each reads the fleet by its own arguments: the second
// profile knows no cliques.
func TestReservation_HoldsAcrossProfiles(t *testing.T) {
	t.Parallel()
	config := schedulertest.Config(t)
	second := config.Profiles[0].DeepCopy()
	second.SchedulerName = "second"
	at := 0
	for i := range second.PluginConfig {
		if second.PluginConfig[i].Name == gangplacement.Name {
			at = i
		}
	}
	second.PluginConfig[at].Args = &runtime.Unknown{
		Raw: []byte(`{"levels": [{"key": "kubernetes.io/hostname"}]}`), ContentType: runtime.ContentTypeJSON,
	}
	config.Profiles = append(config.Profiles, *second)
	running, members := schedulertest.RunningGang("runs", "", schedulertest.CliqueNodes(0, 4)...)
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, 4), running, members)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	c.StartScheduler(ctx, t, c, config, schedulertest.Registry(clock.RealClock{}))

	first, its := schedulertest.Gang("first", 4, "")
	later, theirs := schedulertest.Gang("later", 3, "clique")
	for i, pods := range [][]*corev1.Pod{its, theirs} {
		for _, p := range pods {
			p.Spec.SchedulerName = []string{"second", config.Profiles[0].SchedulerName}[i]
		}
	}
	schedulertest.SetQueuedAt(first, 1)
	schedulertest.SetQueuedAt(later, 2)
	c.Create(t, later, theirs)
	c.WaitRejected(t, "later")
	c.Create(t, first, its)
	c.WaitRejected(t, "first")
	c.DeletePods(t, members[:1]) // not enough for either: the first is tried, and the later one after it
	why := c.WaitRejected(t, "later")
	if strings.Contains(why, "level") {
		t.Errorf("the later gang waits for: %s", why)
	}
	c.DeletePods(t, members[1:])
	if got := c.WaitBound(t, its); !slices.Equal(slices.Sorted(slices.Values(got)), schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("the first gang is on %v", got)
	}
	c.ExpectUnbound(t, theirs)
	c.DeletePods(t, its)
	c.WaitBound(t, theirs)
}
