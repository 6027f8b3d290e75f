package kube_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/engine/kube"
	"github.com/lockstep-project/lockstep/simulator/engine/scenarios"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// racked is scheduler_perf's fleet: racks of 100 nodes with four cores.
const racked = `
apiVersion: simulator.lockstep.dev/v1alpha1
kind: Fleet
metadata: {name: racked}
spec:
  groups:
  - name: rack-{rack:03}-node-{node:03}
    counters: [{name: rack, count: %d}, {name: node, count: 100}]
    labels: {fabric.topograph.run/tier-0: "rack-{rack}"}
    capacity: {cpu: 4, memory: 32Gi, nvidia.com/gpu: 8}
`

// gangs are so many, one a second, of pods that request a tenth of a core, in one rack each. None ends before all have
// arrived.
func gangs(tb testing.TB, racks, n, size int) *scenario.Scenario {
	tb.Helper()
	f, err := fleet.Read("racked", []byte(fmt.Sprintf(racked, racks)))
	if err != nil {
		tb.Fatal(err)
	}
	var t trace.Trace
	for i := range n {
		t.Jobs = append(t.Jobs, trace.Job{
			ID: fmt.Sprintf("gang-%04d", i), Submit: time.Duration(i) * time.Second, Duration: 24 * time.Hour,
			Podsets: []trace.Podset{{Count: size, CPU: 100, Memory: 100 << 20}}, Required: "tier-0",
		})
	}
	s, err := importer.New(f, t, scenario.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// BenchmarkReplay measures the pods per second that the shipped profile places: simulator/BENCH.md asks for 2,000 on
// 5,000 nodes.
func BenchmarkReplay(b *testing.B) {
	for _, of := range []struct{ racks, gangs, size int }{
		{50, 750, 4}, {50, 9, 1000}, {10, 750, 4}, {10, 3, 1000}, {40, 750, 4}, {40, 9, 1000}, {160, 750, 4}, {160, 9, 1000},
	} {
		b.Run(fmt.Sprintf("nodes=%d/%dx%d", of.racks*100, of.gangs, of.size), func(b *testing.B) {
			replay(b, kube.Lockstep, of.racks, of.gangs, of.size)
		})
	}
}

// BenchmarkNative plays the stock profile, and ours beside it, with a load that the stock one can handle in a while.
func BenchmarkNative(b *testing.B) {
	for _, profile := range []kube.Profile{kube.Native, kube.Lockstep} {
		b.Run(string(profile), func(b *testing.B) { replay(b, profile, 10, 50, 4) })
	}
}

// BenchmarkContention plays 600 gangs that wait for 64 nodes, with the machine of the queue alone and with the real
// scheduler: gangs that only wait, without and with estimates, and a random scenario with preemption, elastic gangs and
// outages. Each start of a pod counts.
func BenchmarkContention(b *testing.B) {
	for _, of := range []struct {
		name  string
		build func() (*scenario.Scenario, error)
	}{
		{"queued", func() (*scenario.Scenario, error) { return scenarios.Queued(1, 600, 0) }},
		{"estimates", func() (*scenario.Scenario, error) { return scenarios.Queued(1, 600, 0.7) }},
		{"random", func() (*scenario.Scenario, error) { return scenarios.Random(0, 600) }},
	} {
		s, err := of.build()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(of.name+"/direct", func(b *testing.B) {
			contend(b, func() *record {
				return run(b.Context(), b, s, direct.NewEngine(direct.Options{Preempt: true}, time.Now))
			})
		})
		b.Run(of.name+"/kube", func(b *testing.B) {
			contend(b, func() *record { return play(b, s, kube.Lockstep) })
		})
	}
}

func contend(b *testing.B, play func() *record) {
	b.Helper()
	used, placed, decisions := processor(b), 0, 0
	for b.Loop() {
		r := play()
		placed, decisions = placed+pods(r), decisions+len(r.decisions)
	}
	b.ReportMetric(float64(placed)/float64(b.N), "pods")
	b.ReportMetric(float64(decisions)/float64(b.N), "decisions")
	b.ReportMetric(float64(placed)/(processor(b)-used).Seconds(), "pods/cpu-s")
}

// pods counts the pods that were placed: those of starts, and those that joined.
func pods(r *record) int {
	n, runs := 0, make(map[int]int)
	for _, e := range r.events {
		switch e.Kind {
		case engine.Started:
			n, runs[e.Job] = n+len(e.Nodes), len(e.Nodes)
		case engine.Joined:
			n, runs[e.Job] = n+len(e.Nodes)-runs[e.Job], len(e.Nodes)
		default:
		}
	}
	return n
}

// replay measures how fast a profile places gangs on so many racks.
func replay(b *testing.B, profile kube.Profile, racks, n, size int) {
	b.Helper()
	s := gangs(b, racks, n, size)
	used := processor(b)
	for b.Loop() {
		placed := 0
		for _, e := range play(b, s, profile).events {
			if e.Kind == engine.Started {
				placed += len(e.Nodes)
			}
		}
		if placed != n*size {
			b.Fatalf("%d pods were placed", placed)
		}
	}
	pods := float64(n * size * b.N)
	b.ReportMetric(pods/b.Elapsed().Seconds(), "pods/s")
	b.ReportMetric(pods/(processor(b)-used).Seconds(), "pods/cpu-s")
}

// processor returns the processor time of the process, garbage collection included: it can be compared on a machine
// that others use, too.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
