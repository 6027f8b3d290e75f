package direct_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	simfleet "github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// machines is a fleet of nodes with so many accelerators each, in racks; eight racks are a block.
func machines(nodes, perRack int, gpus int64) simfleet.Fleet {
	f := simfleet.Fleet{Name: fmt.Sprint("machines-", nodes)}
	for i := range nodes {
		list := corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(128, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(1<<40, resource.BinarySI),
			corev1.ResourcePods:   *resource.NewQuantity(110, resource.DecimalSI),
			"nvidia.com/gpu":      *resource.NewQuantity(gpus, resource.DecimalSI),
		}
		f.Nodes = append(f.Nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%06d", i), Labels: map[string]string{
				"topology.kubernetes.io/zone": fmt.Sprintf("b%04d", i/perRack/8),
				"topology.kubernetes.io/rack": fmt.Sprintf("r%05d", i/perRack),
			}},
			Status: corev1.NodeStatus{Capacity: list, Allocatable: list.DeepCopy()},
		})
	}
	return f
}

func prepare(tb testing.TB, f simfleet.Fleet, name string, jobs int, o scenario.Options) *scenario.Scenario {
	tb.Helper()
	t, err := trace.Open(name, o.Seed)
	if err != nil {
		tb.Fatal(err)
	}
	t.Jobs = t.Jobs[:min(jobs, len(t.Jobs))]
	s, err := importer.New(f, t, o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// speed counts events.
type speed struct {
	scene              *scenario.Scenario
	pods, starts, asks int
	took               time.Duration
}

func (s *speed) Happens(e engine.Event) {
	if e.Kind == engine.Started {
		s.starts++
		s.pods += len(e.Nodes)
	}
}

func (s *speed) Decides(d engine.Decision) { s.asks, s.took = s.asks+1, s.took+d.Took }

// plainly evaluates each gang anew, without any state between two questions.
type plainly struct{}

func (plainly) Place(l topology.Ledger, gang topology.Gang) ([]int, bool) {
	p, short, err := topology.Place(topology.Ledger{Tree: l.Tree, Free: l.Free, Total: l.Total}, gang)
	return p.Nodes, short == nil && err == nil
}

func measureEngine(b *testing.B, s *scenario.Scenario, o direct.Options) {
	b.Helper()
	w := speed{scene: s}
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		if err := direct.NewEngine(o, time.Now).Run(b.Context(), s, &w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(w.pods)/b.Elapsed().Seconds(), "pods/s")
	b.ReportMetric(float64(w.pods)/(processorTime(b)-before).Seconds(), "pods/cpu-s")
	b.ReportMetric(float64(w.asks)/float64(w.starts), "asks/gang")
	b.ReportMetric(float64(w.took.Microseconds())/float64(w.asks), "µs/ask")
}

// processorTime returns the processor time of the process so far, its garbage collector included: other programs do not
// slow it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkEngine replays the workloads of simulator/BENCH.md, once as the product and once with a policy that calls
// topology.Place for each gang and caches nothing.
func BenchmarkEngine(b *testing.B) {
	k8s, err := simfleet.Open("k8s-5000")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		scene func(b *testing.B) *scenario.Scenario
	}{
		{"tas-750x4/nodes=5000", func(b *testing.B) *scenario.Scenario {
			b.Helper()
			return prepare(b, k8s, "k8s-tas:750x4", 1e6, scenario.Options{})
		}},
		{"tas-9x1000/nodes=5000", func(b *testing.B) *scenario.Scenario {
			b.Helper()
			return prepare(b, k8s, "k8s-tas:9x1000", 1e6, scenario.Options{})
		}},
		{"philly/gpus=512", func(b *testing.B) *scenario.Scenario {
			b.Helper()
			return prepare(b, machines(64, 8, 8), "philly", 10000, scenario.Options{Estimates: 2})
		}},
		{"philly-x64/gpus=4096", func(b *testing.B) *scenario.Scenario {
			b.Helper()
			return prepare(b, machines(512, 16, 8), "philly", 10000, scenario.Options{Estimates: 2, Load: 64})
		}},
	} {
		s := c.scene(b)
		b.Run(c.name+"/product", func(b *testing.B) { measureEngine(b, s, direct.Options{}) })
		b.Run(c.name+"/greedy", func(b *testing.B) { measureEngine(b, s, direct.Options{Discipline: direct.Greedy}) })
		b.Run(c.name+"/plain", func(b *testing.B) {
			measureEngine(b, s, direct.Options{Discipline: direct.Greedy, Policy: plainly{}})
		})
	}
}

// heap samples the memory in use now and then.
type heap struct {
	speed
	events int
	most   uint64
}

func (h *heap) Happens(e engine.Event) {
	h.speed.Happens(e)
	if h.events++; h.events%20000 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		h.most = max(h.most, m.HeapAlloc)
	}
}

// BenchmarkEngineMemory replays 100,000 jobs, Philly's in a row, on 4,096 GPUs. The memory is that above the scene's
// own.
func BenchmarkEngineMemory(b *testing.B) {
	const jobs = 100_000
	work, err := trace.Open("philly", 0)
	if err != nil {
		b.Fatal(err)
	}
	round := work.Jobs
	span := round[len(round)-1].Submit
	work.Jobs = nil
	for n := 0; len(work.Jobs) < jobs; n++ {
		for _, j := range round[:min(len(round), jobs-len(work.Jobs))] {
			j.ID, j.Submit = fmt.Sprint(n, "-", j.ID), j.Submit+time.Duration(n)*span
			work.Jobs = append(work.Jobs, j)
		}
	}
	s, err := importer.New(machines(512, 16, 8), work, scenario.Options{Estimates: 2, Load: 64})
	if err != nil {
		b.Fatal(err)
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		w := heap{speed: speed{scene: s}}
		if err := direct.NewEngine(direct.Options{}, time.Now).Run(b.Context(), s, &w); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(w.most-before.HeapAlloc)/(1<<20), "MB")
		b.ReportMetric(float64(before.HeapAlloc)/(1<<20), "MB-scene")
		b.ReportMetric(float64(w.asks)/float64(w.starts), "asks/gang")
	}
}

// BenchmarkEngineGrowth replays gangs of four on fleets that grow; each gang has its share of time, so that half of the
// fleet is in use.
func BenchmarkEngineGrowth(b *testing.B) {
	for _, nodes := range []int{1024, 4096, 16384, 65536} {
		f := machines(nodes, 16, 8)
		b.Run(fmt.Sprintf("on-a-node/nodes=%d", nodes), func(b *testing.B) {
			s := prepare(b, f, fmt.Sprintf("k8s-gang:%dx4", nodes/4), 1e6, scenario.Options{})
			measureEngine(b, s, direct.Options{})
		})
		b.Run(fmt.Sprintf("in-a-rack/nodes=%d", nodes), func(b *testing.B) {
			s := prepare(b, f, fmt.Sprintf("k8s-gang:%dx4", nodes/8), 1e6, scenario.Options{})
			for i := range s.Jobs { // each member takes a node
				s.Jobs[i].Gang.Shapes[0].Demand[s.Accelerator] = 8
				s.Jobs[i].Accelerators = 32
			}
			measureEngine(b, s, direct.Options{})
		})
	}
}
