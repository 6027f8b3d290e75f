package contention_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// BenchmarkMachine_Ended measures the cost of the end of a unit, with all evaluations that follow from it, on a full
// fleet: cliques of 64 nodes of 8 GPUs, units of 1 to 8 GPUs whose ends are not known and which run two hours in the
// mean, a gang that waits for a whole clique, and 200 others in 20 classes.
func BenchmarkMachine_Ended(b *testing.B) {
	for _, rules := range []string{"eager", "lazy"} {
		for _, nodes := range []int{1 << 10, 1 << 12, 1 << 14, 1 << 16} {
			b.Run(fmt.Sprintf("%s/nodes=%d", rules, nodes), func(b *testing.B) {
				policy := contention.DefaultPolicy()
				if rules == "eager" {
					policy = policy.Eager()
				}
				f := fill(b, nodes, policy)
				f.round()
				f.turns = 0
				ended := 0
				for b.Loop() {
					f.end()
					ended++
				}
				b.ReportMetric(float64(f.turns)/float64(ended), "turns/op")
			})
		}
	}
}

// busyFleet is a full fleet, and the machine that is driven.
type busyFleet struct {
	machine *contention.Machine
	snap    *contention.Snapshot
	units   []*contention.Unit
	draw    *rand.Rand
	// number counts the units and gangs, turns the evaluations.
	number, turns int
	// passed is the time in units of the mean distance of two ends.
	passed int64
}

const (
	benchClique = 64
	benchGPUs   = 8
	benchStart  = 100 * day
	benchRuns   = 2 * hour
)

func fill(b *testing.B, nodes int, policy contention.Policy) *busyFleet {
	b.Helper()
	var of []topology.Node
	for i := range nodes {
		of = append(of, topology.Node{
			Name: fmt.Sprintf("n%05d", i), Labels: map[string]string{"clique": fmt.Sprintf("c%04d", i/benchClique)},
		})
	}
	tree, err := topology.NewTree([]topology.Level{{Name: "clique", Key: "clique"}}, of)
	if err != nil {
		b.Fatal(err)
	}
	f := &busyFleet{machine: contention.New(policy), draw: rand.New(rand.NewPCG(1, 2)), snap: &contention.Snapshot{
		Now: benchStart, Running: &contention.Units{}, Accelerators: []int{0}, Fleet: int64(nodes) * benchGPUs,
		Ledger: topology.Ledger{Tree: tree, Free: make([]topology.Capacity, nodes)},
	}}
	for node := range nodes {
		f.snap.Ledger.Free[node] = topology.Capacity{0}
		for left := int64(benchGPUs); left > 0; {
			gpus := min(left, 1+f.draw.Int64N(benchGPUs))
			left -= gpus
			f.run(
				[]topology.Held{{Node: node, Demand: topology.Capacity{gpus}}},
				2*benchRuns*int64(f.number-3*nodes)/int64(3*nodes),
			)
		}
	}
	f.wait(-1, benchClique, benchGPUs, "clique")
	for range 10 {
		for class := range 20 {
			f.wait(class, 0, 0, "")
		}
	}
	return f
}

// run starts a unit so many seconds from now.
func (f *busyFleet) run(holds []topology.Held, since int64) {
	gpus := int64(0)
	for _, h := range holds {
		gpus += h.Demand[0]
	}
	f.number++
	u := &contention.Unit{
		ID: contention.ID(
			fmt.Sprintf("u%08d", f.number),
		),
		Holds:        holds,
		Accelerators: gpus,
		Started:      f.snap.Now + since,
	}
	f.units = append(f.units, u)
	f.snap.Running.Add(u)
}

// wait puts a gang into the queue: a class has gangs of as many members, with as many GPUs each, and half of the
// classes need a clique.
func (f *busyFleet) wait(class, members int, gpus int64, required string) {
	if class >= 0 {
		members, gpus = 2+3*class, []int64{benchGPUs, benchGPUs / 2}[class%2]
		required = []string{"clique", ""}[class/2%2]
	}
	f.number++
	id := fmt.Sprintf("g%02d-%08d", class, f.number)
	f.machine.Add(contention.Entity{
		ID: contention.ID(id), Order: contention.Order{Since: time.Unix(int64(f.number), 0), Name: id},
		Accelerators: int64(members) * gpus,
		Ask: contention.Ask{Needed: members, Gang: topology.Gang{
			Name: id, Required: required, Members: make([]topology.Member, members),
			Shapes: []topology.Shape{{Demand: topology.Capacity{gpus}}},
		}},
	})
}

// end ends a unit, evaluates the candidates, and fills the place again.
func (f *busyFleet) end() {
	f.passed++
	f.snap.Now = benchStart + f.passed*benchRuns/int64(len(f.units))
	i := f.draw.IntN(len(f.units))
	u := f.units[i]
	f.units[i] = f.units[len(f.units)-1]
	f.units = f.units[:len(f.units)-1]
	f.snap.Running.Remove(u.ID)
	for _, h := range u.Holds {
		f.snap.Ledger.Free[h.Node][0] += h.Demand[0]
	}
	f.machine.Ended(u, f.snap.Now)
	f.round()
	for _, h := range u.Holds {
		if free := f.snap.Ledger.Free[h.Node]; free[0] > 0 {
			f.run([]topology.Held{{Node: h.Node, Demand: topology.Capacity{free[0]}}}, 0)
			free[0] = 0
			f.machine.Taken([]int{h.Node})
		}
	}
	f.round()
}

// round evaluates all candidates. An entity that starts is replaced in the queue.
func (f *busyFleet) round() {
	for {
		for id, ok := f.machine.Next(); ok; id, ok = f.machine.Next() {
			f.turns++
			for _, a := range f.machine.Turn(id, f.snap) {
				if placed, is := a.(contention.Placed); is {
					f.start(placed)
				}
			}
		}
		f.machine.Settle(f.snap)
		if _, more := f.machine.Next(); !more {
			return
		}
	}
}

func (f *busyFleet) start(a contention.Placed) {
	var holds []topology.Held
	for rank, node := range a.Placement.Nodes {
		demand := a.Gang.Shapes[a.Gang.Members[rank].Shape].Demand
		holds = append(holds, topology.Held{Node: node, Demand: demand})
		f.snap.Ledger.Free[node][0] -= demand[0]
	}
	f.run(holds, 0)
	f.machine.Started(a.ID, a.Placement.Nodes, f.snap.Now)
	var class int
	if _, err := fmt.Sscanf(string(a.ID), "g%d-", &class); err == nil {
		f.wait(class, benchClique, benchGPUs, "clique")
	}
}
