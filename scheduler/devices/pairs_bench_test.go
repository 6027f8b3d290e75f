package devices_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// A gang whose 512 members each take all of a node's eight pairs of a GPU and a NIC at one PCIe root, on 4,000 nodes in
// four blocks; one block has to hold it. The measured time is that of the PodGroup's attempt, not of the plan alone:
// the allocator has assigned devices to every member at its end. Native is kube-scheduler with its own profile and the
// gates on.
func BenchmarkAlignedPairs(b *testing.B) {
	for _, size := range []struct{ blocks, nodes, members, gangs int }{
		{4, 250, 128, 3}, {4, 1000, 512, 3}, {4, 4000, 2048, 2},
	} {
		b.Run(fmt.Sprintf("nodes=%d/members=%d/ours", size.blocks*size.nodes, size.members), func(b *testing.B) {
			objects := schedulertest.PairedCliques(size.blocks, size.nodes, 8)
			for b.Loop() {
				alignPairs(
					b,
					objects,
					size.members,
					size.gangs,
					schedulertest.Config(b),
					schedulertest.Registry(clock.RealClock{}),
				)
			}
		})
		if size.nodes > 1000 {
			continue // native needs minutes for the size before
		}
		b.Run(fmt.Sprintf("nodes=%d/members=%d/native", size.blocks*size.nodes, size.members), func(b *testing.B) {
			objects := schedulertest.PairedCliques(size.blocks, size.nodes, 8)
			for b.Loop() {
				alignPairs(b, objects, size.members, 1, schedulertest.NativeConfig(b), nil)
			}
		})
	}
}

// alignPairs submits gangs one after another, each to a block of its own, and reports the median of their attempts.
func alignPairs(
	b *testing.B, objects []runtime.Object, members, gangs int,
	config *schedulerconfig.KubeSchedulerConfiguration, registry frameworkruntime.Registry,
) {
	b.Helper()
	c := schedulertest.NewUnstartedCluster(b, objects)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	c.StartScheduler(ctx, b, c, config, registry)
	var attempt, wall []time.Duration
	for i := range gangs {
		group, pods, claims := schedulertest.PairGang(fmt.Sprint("train-", i), members, 8, "gpu")
		for _, o := range claims {
			if err := c.Tracker().Add(o); err != nil {
				b.Fatal(err)
			}
		}
		var t schedulertest.AttemptTimer
		t.Measure(b, 1, func() { c.AwaitBound(b, c.Submit(b, group, pods), 9*time.Minute) })
		attempt = append(attempt, time.Duration(t.PerAttempt()*float64(time.Millisecond)))
		wall = append(wall, t.Wall())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(attempt[0].Seconds(), "s/first-attempt")
	b.ReportMetric(schedulertest.Median(attempt).Seconds(), "s/attempt")
	b.ReportMetric(schedulertest.Median(wall).Seconds(), "s/until-bound")
}
