package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Begin is the part of a scene in which jobs come, and Trouble that in which faults begin; none lasts longer than longest.
const (
	comes   = 2 * time.Minute
	Trouble = 8 * time.Minute
	longest = 6 * time.Minute
)

// Draw draws a scene from a seed.
func Draw(seed uint64) Scene {
	r := rand.New(rand.NewPCG(seed, 25)) //nolint:gosec // chance that comes again
	s := Scene{Seed: seed, Racks: 1 + r.IntN(2), PerRack: 2 + r.IntN(3), GPUs: 4}
	for i := range 2 + r.IntN(6) {
		j := Job{
			Name: fmt.Sprintf("job-%d", i), At: seconds(r, comes), Nodes: 1 + r.IntN(s.PerRack),
			GPUs: []int{4, 4, 2, 1}[r.IntN(4)], Runs: 20*time.Second + seconds(r, 3*time.Minute),
			Rack: r.IntN(2) == 0, Replace: r.IntN(3) == 0,
		}
		if !j.Rack {
			j.Nodes = 1 + r.IntN(s.Racks*s.PerRack)
		}
		if r.IntN(5) < 2 {
			j.Priority = 100
		}
		s.Jobs = append(s.Jobs, j)
	}
	for range 1 + r.IntN(8) {
		f := drawFault(r, s)
		s.Faults = append(s.Faults, f)
		if f.Kind == Kill && f.Bound > 0 && r.IntN(2) == 0 { // its successor finds another cluster
			s.Faults = append(s.Faults, Fault{
				Kind: []Kind{CordonAll, RemoveNode, LoseNode}[r.IntN(3)], Job: f.Job, Bound: f.Bound,
				Node: r.IntN(s.Racks * s.PerRack), For: time.Minute + seconds(r, longest),
			})
		}
	}
	slices.SortStableFunc(s.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return s
}

func drawFault(r *rand.Rand, s Scene) Fault {
	kinds := []Kind{
		Crash, Crash, DeletePod, Suspend, DeleteJob, LoseNode, RemoveNode, Cordon, CordonAll, Kill, Kill, Kill,
		Refuse, Drop, Forget, Forget, Slow, Cut, List, Skew,
	}
	f := Fault{Kind: kinds[r.IntN(len(kinds))], At: seconds(r, Trouble)}
	of := s.Jobs[r.IntN(len(s.Jobs))]
	lasts, process := seconds(r, longest), []string{schedulerName, schedulerName, controllerName, jobsetName}[r.IntN(4)]
	rank, node := r.IntN(of.Nodes), r.IntN(s.Racks*s.PerRack)
	switch r.IntN(3) {
	case 0: // a trouble that is short meets a start
		f.At = of.At + seconds(r, 20*time.Second)
		lasts = time.Second + seconds(r, 30*time.Second)
	case 1: // or comes in the middle of one
		f.At, f.Job, f.Bound = 0, of.Name, 1+r.IntN(2*of.Nodes)
		lasts = min(lasts, time.Minute)
	default:
	}
	switch f.Kind {
	case Crash:
		f.Job, f.Rank, f.Code = of.Name, rank, []int32{1, 137, 3}[r.IntN(3)]
	case DeletePod:
		f.Job, f.Rank = of.Name, rank
	case Suspend:
		f.Job, f.For = of.Name, lasts
	case DeleteJob:
		f.Job = of.Name
	case CordonAll:
		f.For = lasts
	case LoseNode, RemoveNode, Cordon:
		f.Node, f.For = node, lasts
	case Kill:
		f.Process, f.For = process, min(lasts, time.Minute)
	case Refuse, Drop, Forget, Slow, Cut, List:
		f.Process, f.For = process, min(lasts, 2*time.Minute)
	case Skew:
		f.Process, f.For = []string{schedulerName, controllerName}[r.IntN(2)], lasts
	}
	return f
}

func seconds(r *rand.Rand, upTo time.Duration) time.Duration {
	return time.Duration(r.IntN(int(upTo/time.Millisecond))) * time.Millisecond
}
