package baseline_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/topologytest"
)

// each holds a property against scenes of any kind.
func each(t *testing.T, property func(*rapid.T, topologytest.Scene)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64()
		r := rand.New(rand.NewPCG(seed.Draw(t, "seed"), seed.Draw(t, "stream")))
		for range 20 {
			scene, _, _ := topologytest.Draw(topologytest.Options{
				Shapes: 3, Rules: topologytest.Rules(), Accelerator: r.IntN(4) == 0,
			}, r.IntN).InTree()
			property(t, scene)
		}
	})
}

func ledgerOf(t *rapid.T, s topologytest.Scene) topology.Ledger {
	tree, err := topology.NewTree(s.Levels, s.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	return topology.Ledger{Tree: tree, Free: s.Free, Total: s.Total}
}

// All members have a place or none has; no node gives more than it has, or resources for which it is barred; the same
// question has the same answer, whatever was evaluated before; and an evaluation changes nothing.
func TestPlace_IsWholeAndRepeatable(t *testing.T) {
	for _, name := range baseline.Names() {
		t.Run(name, func(t *testing.T) {
			used := named(t, name)
			each(t, func(t *rapid.T, s topologytest.Scene) {
				l, before := ledgerOf(t, s), s.Clone()
				before.Free = nil
				for _, free := range s.Free {
					before.Free = append(before.Free, slices.Clone(free))
				}
				at, ok := used.Place(l, s.Gang)
				if !reflect.DeepEqual(s.Free, before.Free) || !reflect.DeepEqual(s.Gang, before.Gang) {
					t.Fatalf("%s\nasking changed the question", before)
				}
				fresh, err := baseline.New(name, 1)
				if err != nil {
					t.Fatal(err)
				}
				if again, also := fresh.Place(l, s.Gang); ok != also || !slices.Equal(at, again) {
					t.Fatalf("%s\n%v %t, then %v %t", s, at, ok, again, also)
				}
				if !ok {
					if at != nil {
						t.Fatalf("%s\nrefused, with nodes %v", s, at)
					}
					return
				}
				if err := unruled(s).Check(at); err != nil {
					t.Fatalf("%s\n%v: %v", s, s.Names(at), err)
				}
			})
		})
	}
}

// unruled is the scene with only the constraints that every policy observes.
func unruled(s topologytest.Scene) topologytest.Scene {
	s.Gang = topology.Gang{Name: s.Gang.Name, Members: s.Gang.Members, Shapes: s.Gang.Shapes}
	return s
}

// Wherever a job is placed, one of the sets that were named for it has as many of its members as was said.
func TestSlurmBlock_OneSetHoldsThePlace(t *testing.T) {
	policy := named(t, baseline.SlurmBlock)
	each(t, func(t *rapid.T, s topologytest.Scene) {
		l := ledgerOf(t, s)
		sets, members := policy.(direct.Confining).Sets(l, s.Gang)
		at, ok := policy.Place(l, s.Gang)
		if sets == nil || !ok {
			return
		}
		for _, set := range sets {
			inside := 0
			for _, node := range at {
				if slices.Contains(set, node) {
					inside++
				}
			}
			if inside >= members {
				return
			}
		}
		t.Fatalf("%s\n%v: no set of %v has %d of them", s, s.Names(at), sets, members)
	})
}

// Kueue's promises: a required level, and slices.
func TestKueueBestFit_KeepsRequiredLevels(t *testing.T) {
	policy := named(t, baseline.KueueBestFit)
	each(t, func(t *rapid.T, s topologytest.Scene) {
		s.Gang.Shapes = s.Gang.Shapes[:1]
		for i := range s.Gang.Members {
			s.Gang.Members[i] = topology.Member{Name: s.Gang.Members[i].Name}
		}
		at, ok := policy.Place(ledgerOf(t, s), s.Gang)
		if !ok {
			return
		}
		only := unruled(s)
		only.Gang.Required, only.Gang.Segment = s.Gang.Required, s.Gang.Segment
		if err := only.Check(at); err != nil {
			t.Fatalf("%s\n%v: %v", s, s.Names(at), err)
		}
	})
}

// Of one shape, every policy that knows no topology places as many as there is room for.
func TestPlace_LeavesNoRoomUnused(t *testing.T) {
	for _, name := range []string{baseline.Random, baseline.FirstFit, baseline.LeastAllocated, baseline.MostAllocated} {
		t.Run(name, func(t *testing.T) {
			policy := named(t, name)
			each(t, func(t *rapid.T, s topologytest.Scene) {
				s.Gang.Shapes = s.Gang.Shapes[:1]
				room := 0
				for i := range s.Gang.Members {
					s.Gang.Members[i] = topology.Member{Name: s.Gang.Members[i].Name}
				}
				for node := range s.Nodes {
					room += s.Room(0, node, len(s.Gang.Members))
				}
				if at, ok := policy.Place(ledgerOf(t, s), s.Gang); ok != (room >= len(s.Gang.Members)) {
					t.Fatalf("%s\nroom for %d: %v %t", s, room, at, ok)
				}
			})
		})
	}
}

// The scores' twin looks at every node for every pod, by kube-scheduler's formula as it is written down.
func TestScores_EqualTheirTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		l, g := scoredScene(t, r)
		for _, name := range []string{baseline.LeastAllocated, baseline.MostAllocated} {
			got, ok := named(t, name).Place(l, g)
			if twin := twinOfScores(l, g, name); ok != (twin != nil) || !slices.Equal(got, twin) {
				t.Fatalf("scene %d: %s places %v, its twin %v", i, name, got, twin)
			}
		}
	}
}

func scoredScene(t *testing.T, r *rand.Rand) (topology.Ledger, topology.Gang) {
	t.Helper()
	var nodes strings.Builder
	count := 2 + r.IntN(8)
	for n := range count {
		fmt.Fprintf(&nodes, "n%d=8 ", n)
	}
	l := fleet(t, "", nodes.String())
	for n := range count {
		l.Total[n] = topology.Capacity{10, 16000, 64, 8 * r.Int64N(2)}
		l.Free[n] = topology.Capacity{r.Int64N(11), r.Int64N(17) * 1000, r.Int64N(65), r.Int64N(l.Total[n][3] + 1)}
	}
	g := topology.Gang{Name: "job", Members: make([]topology.Member, 1+r.IntN(8))}
	for range 2 {
		demand := topology.Capacity{1, r.Int64N(4) * 500, r.Int64N(8), r.Int64N(3)}
		g.Shapes = append(g.Shapes, topology.Shape{Demand: demand})
	}
	for m := range g.Members {
		g.Members[m].Shape = r.IntN(2)
	}
	return l, g
}

func twinOfScores(l topology.Ledger, g topology.Gang, strategy string) []int {
	var free []topology.Capacity
	for _, f := range l.Free {
		free = append(free, slices.Clone(f))
	}
	var nodes []int
	for _, m := range g.Members {
		demand, best, highest := g.Shapes[m.Shape].Demand, -1, int64(-1)
		for n := range free {
			if score := twinOfScore(l.Total[n], free[n], demand, strategy); score > highest {
				best, highest = n, score
			}
		}
		if best < 0 {
			return nil
		}
		for r, asked := range demand {
			free[best][r] -= asked
		}
		nodes = append(nodes, best)
	}
	return nodes
}

// twinOfScore is -1 for a node without room.
func twinOfScore(total, free, demand topology.Capacity, strategy string) int64 {
	var sum, weights int64
	for r, asked := range demand {
		if free[r] < asked {
			return -1
		}
		if r == 0 || total[r] == 0 || r == 3 && asked == 0 {
			continue
		}
		part := free[r] - asked
		if strategy == baseline.MostAllocated {
			part = total[r] - part
		}
		sum += part * 100 / total[r]
		weights++
	}
	return sum / max(weights, 1)
}
