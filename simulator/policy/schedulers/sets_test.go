package schedulers_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
	"github.com/lockstep-project/lockstep/topology"
)

// eventLog has the events, a line each.
type eventLog []string

func (s *eventLog) Decides(engine.Decision) {}

func (s *eventLog) Happens(e engine.Event) {
	*s = append(*s, fmt.Sprint(e.At, " ", e.Job, " ", e.Kind, " ", e.Nodes))
}

// Slurm's plans begin at the first instant at which a set of nodes may have room, but only for gangs of one shape. A
// second shape that no member has makes the plan try every instant, and it finds the same.
func TestSlurmBlock_PlansAsIfEveryInstantWereTried(t *testing.T) {
	for seed := range uint64(60) {
		got, want := crowd(t, rand.New(rand.NewPCG(seed, 1))), crowd(t, rand.New(rand.NewPCG(seed, 1)))
		tryEvery(want)
		if got, want := playedByBlocks(t, got), playedByBlocks(t, want); !slices.Equal(got, want) {
			t.Fatalf("seed %d: got\n%q\nwant\n%q", seed, got, want)
		}
	}
}

// tryEvery gives gangs a second shape that no member has.
func tryEvery(s *scenario.Scenario) {
	for i := range s.Jobs {
		gang := &s.Jobs[i].Gang
		gang.Shapes = append(slices.Clip(gang.Shapes), gang.Shapes[0])
	}
}

// playedByBlocks plays a scene with Slurm's blocks and plans.
func playedByBlocks(tb testing.TB, s *scenario.Scenario) eventLog {
	tb.Helper()
	block, err := baseline.New(baseline.SlurmBlock, 1)
	if err != nil {
		tb.Fatal(err)
	}
	if _, confines := block.(direct.Confining); !confines {
		tb.Fatal("the policy says nothing about its sets of nodes")
	}
	var out eventLog
	e := direct.NewEngine(
		direct.Options{Discipline: direct.Window, Policy: block},
		func() time.Time { return time.Unix(0, 0) },
	)
	if err := e.Run(tb.Context(), s, &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// crowd is a scene with more gangs than there is room for, on racks of four nodes and a few nodes in none.
func crowd(t *testing.T, r *rand.Rand) *scenario.Scenario {
	t.Helper()
	const perRack, outside, gpus = 4, 3, 8
	var nodes []topology.Node
	for i := range perRack * (2 + r.IntN(5)) {
		rack := fmt.Sprintf("r%d", i/perRack)
		nodes = append(
			nodes,
			topology.Node{Name: fmt.Sprintf("n%02d", i), Labels: map[string]string{"test/rack": rack}},
		)
	}
	for i := range outside {
		nodes = append(nodes, topology.Node{Name: fmt.Sprintf("o%d", i)})
	}
	free := make([]topology.Capacity, len(nodes))
	for i := range free {
		free[i] = topology.Capacity{gpus}
	}
	tree, err := topology.NewTree([]topology.Level{{Name: "rack", Key: "test/rack", Weight: 100}}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario.Scenario{
		Ledger: topology.Ledger{Tree: tree, Free: free, Total: slices.Clone(free)},
		Begin:  time.Unix(0, 0), Closed: make([]bool, len(nodes)),
	}
	for i, at := 0, 0; i < 80; i++ {
		s.Jobs = append(s.Jobs, comer(r, i, at))
		at += r.IntN(200)
	}
	return s
}

// comer is a job of some members that each take a node or a part of it; some have segments, and of some no end is
// stated.
func comer(r *rand.Rand, number, at int) scenario.Job {
	id, members, each := fmt.Sprintf("j%02d", number), 1+r.IntN(9), int64(1)<<r.IntN(4)
	gang := topology.Gang{
		Name:    id,
		Members: make([]topology.Member, members),
		Shapes:  []topology.Shape{{Demand: topology.Capacity{each}}},
	}
	for rank := range gang.Members {
		gang.Members[rank].Name = fmt.Sprint(id, "-", rank)
	}
	if members%2 == 0 && r.IntN(3) == 0 {
		gang.Segment = topology.Segment{Size: members / 2, Level: "rack"}
	}
	runs := 30 + r.IntN(3000)
	job := scenario.Job{
		ID: id, Gang: gang, Needed: members, Accelerators: int64(members) * each,
		Submit: time.Duration(at) * time.Second, Duration: time.Duration(runs) * time.Second,
	}
	if r.IntN(5) > 0 {
		job.Estimate = job.Duration * time.Duration(1+r.IntN(3))
	}
	return job
}

// BenchmarkSlurmBlock plays the most contended jobs of c3 by Slurm's blocks: with plans that begin where a block may
// have room, and with plans that try every instant.
func BenchmarkSlurmBlock(b *testing.B) {
	const jobs, load = 5000, 1.5
	machines, err := fleet.Open("c3")
	if err != nil {
		b.Fatal(err)
	}
	recorded, err := trace.Open("acme-seren", 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, every := range []bool{false, true} {
		s, err := importer.New(machines, recorded.Contended(jobs), scenario.Options{Load: load, Estimates: 3, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		if every {
			tryEvery(s)
		}
		b.Run(fmt.Sprint("every-instant=", every), func(b *testing.B) {
			for b.Loop() {
				playedByBlocks(b, s)
			}
		})
	}
}
