//go:build schedperf

package measure_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/dynamic-resource-allocation/structured"
	schedulerruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/schedperf"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

var (
	config    = flag.String("config", "", "configuration of scheduler_perf; without one nothing is run")
	figures   = flag.String("figures", "", "file that gets the figures, as JSON")
	lockstep  = flag.Bool("lockstep", false, "know Lockstep's plugins")
	pods      = flag.Bool("pods", false, "measure the attempts for single pods, not those for pod groups")
	allocator = flag.String("allocator", "", "use only this allocator of devices")
)

// BenchmarkWorkload runs the one workload of -config.
func BenchmarkWorkload(b *testing.B) {
	if *config == "" {
		b.Skip("no -config")
	}
	var registry schedulerruntime.Registry
	if *lockstep {
		registry = scheduler.Registry(timing.With(clock.RealClock{}))
	}
	if *allocator != "" {
		structured.EnableAllocators(*allocator)
	}
	var measured schedperf.Figures
	perf.RunBenchmarkPerfScheduling(b, *config, "schedperf", registry,
		perf.WithPodsSchedulingTimeout(25*time.Minute),
		perf.WithPrepareFn(func(tCtx ktesting.TContext) error {
			// Runs before the scheduler is stopped and its metrics are cleared.
			tCtx.Cleanup(func() { measured = measure(b) })
			return nil
		}))
	items := flag.Lookup("data-items-dir").Value.String()
	var err error
	if measured.Throughput, measured.Seconds, err = schedperf.ReadItems(items); err != nil {
		b.Fatal(err)
	}
	content, err := json.Marshal(measured)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(*figures, content, 0o600); err != nil {
		b.Fatal(err)
	}
}

// measure reads the histograms of attempts and the heap.
func measure(b *testing.B) (out schedperf.Figures) {
	b.Helper()
	prefix := "scheduler_podgroup_scheduling_"
	if *pods {
		prefix = "scheduler_scheduling_"
	}
	metrics, err := testutil.GatherMetrics(legacyregistry.DefaultGatherer)
	if err != nil {
		b.Fatal(err)
	}
	histogram := func(name string) testutil.HistogramVec {
		found, err := metrics.GetHistogramVec(prefix+name, nil)
		if err != nil || len(found) == 0 {
			b.Fatal(fmt.Errorf("%s%s: %w", prefix, name, err))
		}
		return found
	}
	// None has the label if there was no fault.
	faults, _ := metrics.GetHistogramVec(prefix+"attempt_duration_seconds", map[string]string{"result": "error"})
	out.Faults = float64(faults.GetAggregatedSampleCount())
	const ms = 1000
	attempts := histogram("attempt_duration_seconds")
	out.Attempts = float64(attempts.GetAggregatedSampleCount())
	out.AttemptMean = attempts.Average() * ms
	out.AttemptP99 = attempts.Quantile(0.99) * ms
	algorithm := histogram("algorithm_duration_seconds")
	out.AlgorithmMean = algorithm.Average() * ms
	out.AlgorithmP99 = algorithm.Quantile(0.99) * ms
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	out.HeapMB = float64(memory.HeapInuse) / (1 << 20)
	return out
}
