//go:build !race

package scheduler_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/statemap"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// learning returns the shipped configuration with the argument learnRunTimes.
func learning(t *testing.T, learns bool) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	config := schedulertest.Config(t)
	for i, of := range config.Profiles[0].PluginConfig {
		if of.Name == gangplacement.Name {
			config.Profiles[0].PluginConfig[i].Args = &runtime.Unknown{
				Raw: fmt.Appendf(nil, `{"learnRunTimes": %t}`, learns),
			}
		}
	}
	return config
}

// complete has gangs of one node run to their ends, one after another.
func complete(t *testing.T, c *schedulertest.Cluster, names ...string) {
	t.Helper()
	for _, name := range names {
		group, members := schedulertest.Gang(name, 1, "")
		members[0].Spec.RestartPolicy = corev1.RestartPolicyNever
		c.Create(t, group, members)
		c.WaitBound(t, members)
		ends(t, c, corev1.PodSucceeded, members...)
		c.DeletePods(t, members)
	}
}

// tunes are the names of so many tuning jobs.
func tunes(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("tune-", i))
	}
	return names
}

// passer creates a gang of one node that declares no end behind one that waits for both nodes; one of them is free for
// an hour.
func passer(t *testing.T, c *schedulertest.Cluster) []*corev1.Pod {
	t.Helper()
	long, running := schedulertest.Gang("long", 1, "")
	c.Create(t, schedulertest.SetExpectedEnd(long, time.Hour), running)
	c.WaitBound(t, running)
	whole, waits := schedulertest.Gang("whole", 2, "")
	c.Create(t, schedulertest.SetExpectedEnd(whole, 2*time.Hour), waits)
	c.WaitRejected(t, whole.Name)
	group, members := schedulertest.Gang("tune-100", 1, "")
	members[0].Spec.RestartPolicy = corev1.RestartPolicyNever
	c.Create(t, group, members)
	return members
}

// Eight gangs of a name have taken a second. A ninth passes a gang that waits for an hour although it declares no end;
// unless the scheduler learns, it waits.
func TestLearnRunTimes_ShortJobsPassTheHead(t *testing.T) {
	t.Parallel()
	for _, learns := range []bool{true, false} {
		t.Run(strconv.FormatBool(learns), func(t *testing.T) {
			c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, 2))
			c.StartScheduler(t.Context(), t, c, learning(t, learns), schedulertest.Registry(clock.RealClock{}))
			complete(t, c, tunes(8)...)
			members := passer(t, c)
			if learns {
				c.WaitBound(t, members)
			} else {
				c.WaitRejected(t, "tune-100")
			}
		})
	}
}

// A scheduler knows from its start the run times that the one before has learned and written.
func TestLearnRunTimes_SurvivesARestart(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, 2))
	now := int64(1_000_000)
	before := runtimes.New(func() int64 { return now })
	at := statemap.Map{Client: c, Namespace: "lockstep-system", Name: "lockstep-scheduler-run-times"}
	store := runtimes.NewKeeper(at, before, timing.With(clock.RealClock{}))
	store.Load(t.Context())
	for _, name := range tunes(8) {
		id := contention.ID(name)
		before.Waits(id, func() forecast.Key {
			return forecast.Key{Namespace: schedulertest.Namespace, Stem: "tune", Size: 4}
		})
		before.Starts(id)
		now += 60
		before.Ends(id, runtimes.Succeeded)
		before.Leaves(id)
	}
	store.Save(t.Context())
	c.StartScheduler(t.Context(), t, c, learning(t, true), schedulertest.Registry(clock.RealClock{}))
	c.WaitBound(t, passer(t, c))
}
