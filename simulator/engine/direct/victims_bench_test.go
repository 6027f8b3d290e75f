package direct_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/topology"
)

// victim is a gang that runs when a gang of high priority arrives, with the loss if it is preempted.
type victim struct {
	holds []topology.Held
	start int64
	lost  int64
}

// crowded is twelve nodes in three racks, full of gangs of one to four nodes that may be preempted, and one of higher
// priority that needs a number of nodes of one rack.
func crowded(tb testing.TB, seed uint64) direct.Scene {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 9))
	scene := fleet(tb, 12, 4)
	for n, nodes := 0, 0; nodes < 12; n++ {
		members := min(1+r.IntN(4), 12-nodes)
		nodes += members
		j := yielding(job(fmt.Sprint("runs-", n), members, 8, int64(n), direct.Forever), int64(r.IntN(3)*700))
		j.Arrives = int64(r.IntN(5000))
		scene.Jobs = append(scene.Jobs, j)
	}
	urgent := important(job("urgent", 1+r.IntN(4), 8, 6000, 1), 1)
	urgent.Gang.Required = "rack"
	scene.Jobs = append(scene.Jobs, urgent)
	return scene
}

// preempted plays the scene until the gang of high priority has started, and returns the gangs that ran then and the
// loss.
func preempted(tb testing.TB, scene direct.Scene) ([]victim, int64) {
	tb.Helper()
	var all []victim
	result, err := direct.Run(scene, direct.Options{Preempt: true, Until: 6000}, func(e direct.Event) {
		if j := scene.Jobs[e.Job]; e.Kind == direct.Started && j.Name != "urgent" {
			v := victim{start: e.At, lost: 6000 - e.At}
			if j.Saves > 0 {
				v.lost %= j.Saves
			}
			v.lost *= j.Accelerators
			for _, node := range e.Placement.Nodes {
				v.holds = append(v.holds, topology.Held{Node: node, Demand: topology.Capacity{8}})
			}
			all = append(all, v)
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
	if result.Jobs[len(scene.Jobs)-1].Started != 6000 {
		tb.Fatal("the important gang did not start")
	}
	return all, result.Lost
}

// fitsWithout reports whether the important gang fits when those have left whose bits are set.
func fitsWithout(tb testing.TB, scene direct.Scene, all []victim, gone uint) bool {
	tb.Helper()
	ledger := scene.Ledger
	ledger.Free = slices.Clone(ledger.Free)
	for i, v := range all {
		for _, held := range v.holds {
			if gone>>i&1 == 0 {
				ledger.Free[held.Node] = topology.Capacity{0}
			}
		}
	}
	_, short, err := topology.Place(ledger, scene.Jobs[len(scene.Jobs)-1].Gang)
	if err != nil {
		tb.Fatal(err)
	}
	return short == nil
}

func lostWith(all []victim, gone uint) int64 {
	var sum int64
	for i, v := range all {
		sum += v.lost * int64(gone>>i&1)
	}
	return sum
}

// cheapest tries every set of victims.
func cheapest(tb testing.TB, scene direct.Scene, all []victim) int64 {
	tb.Helper()
	best := lostWith(all, 1<<len(all)-1)
	for gone := range uint(1) << len(all) {
		if lost := lostWith(all, gone); lost < best && fitsWithout(tb, scene, all, gone) {
			best = lost
		}
	}
	return best
}

// byImportance is the rule of in-tree preemption: all leave, and those of higher priority, among equals those that
// started earlier, are put back one after another if the gang still fits. In-tree it has to fit in the domain that was
// chosen first; here in any.
func byImportance(tb testing.TB, scene direct.Scene, all []victim) int64 {
	tb.Helper()
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[a].start, all[b].start) })
	gone := uint(1)<<len(all) - 1
	for _, i := range order {
		if fitsWithout(tb, scene, all, gone&^(1<<i)) {
			gone &^= 1 << i
		}
	}
	return lostWith(all, gone)
}

// The loss is the least of any set of victims. The rule of in-tree preemption loses more.
func TestPreemption_LosesTheLeast(t *testing.T) {
	var least, native int64
	for seed := range uint64(100) {
		scene := crowded(t, seed)
		all, lost := preempted(t, scene)
		if best := cheapest(t, scene, all); lost != best {
			t.Errorf("seed %d: %d are lost, %d would do", seed, lost, best)
		}
		least, native = least+lost, native+byImportance(t, scene, all)
	}
	if native <= least {
		t.Errorf("by importance %d are lost, by cost %d: the scenes are too easy", native, least)
	}
}

// BenchmarkPreemption compares the losses in 500 crowded fleets with the least possible ones, and with those of in-tree
// preemption. The time is not meaningful.
func BenchmarkPreemption(b *testing.B) {
	for b.Loop() {
		var ours, native, least float64
		var worst, scenes int
		for seed := range uint64(500) {
			scene := crowded(b, 1000+seed)
			all, lost := preempted(b, scene)
			best := cheapest(b, scene, all)
			ours, least, native = ours+float64(lost), least+float64(best), native+float64(byImportance(b, scene, all))
			if lost != best {
				worst++
			}
			scenes++
		}
		b.ReportMetric(ours/3600/float64(scenes), "h-lost/scene")
		b.ReportMetric(ours/least, "×-least")
		b.ReportMetric(native/least, "×-least-in-tree-rule")
		b.ReportMetric(float64(worst), "scenes-not-least")
	}
}
