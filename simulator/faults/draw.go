package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Begin is the part of a scene in which jobs arrive, and Trouble that in which faults begin; none lasts longer than
// longest.
const (
	comes   = 2 * time.Minute
	Trouble = 8 * time.Minute
	longest = 10 * time.Minute
)

// Draw draws a scene from a seed.
func Draw(seed uint64) Scene {
	r := rand.New(rand.NewPCG(seed, 25)) //nolint:gosec // chance that comes again
	s := Scene{Seed: seed, Racks: 1 + r.IntN(2), PerRack: 2 + r.IntN(3), GPUs: 4}
	for i := range 3 + r.IntN(5) {
		j := Job{
			Name: fmt.Sprintf("job-%d", i), At: seconds(r, comes), Nodes: 1 + r.IntN(s.PerRack),
			GPUs: []int{4, 4, 2, 1}[r.IntN(4)], Runs: 20*time.Second + seconds(r, 3*time.Minute),
			Rack: r.IntN(5) < 3, Replace: r.IntN(2) == 0,
		}
		if !j.Rack {
			j.Nodes = 1 + r.IntN(s.Racks*s.PerRack)
		}
		if r.IntN(2) == 0 {
			j.Priority = 100
		}
		s.Jobs = append(s.Jobs, j)
	}
	for range 2 + r.IntN(8) {
		s.Faults = append(s.Faults, drawFault(r, s))
	}
	if of := s.Jobs[r.IntN(len(s.Jobs))]; of.Nodes > 1 && r.IntN(5) == 0 {
		s.Faults = append(s.Faults, drawTear(r, of)...)
	}
	drawOthers(&s)
	if r := rand.New(rand.NewPCG(seed, 27)); s.Claims { //nolint:gosec // chance that comes again
		s.Channels = r.IntN(2) == 0
	}
	slices.SortStableFunc(s.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return s
}

// drawOthers makes some jobs native ones, lets some of them shrink for a while, and adds pods of another scheduler.
func drawOthers(s *Scene) {
	r := rand.New(rand.NewPCG(s.Seed, 26)) //nolint:gosec // chance that comes again
	for i := range s.Jobs {
		if r.IntN(5) == 0 {
			s.Jobs[i].Native, s.Jobs[i].Replace = true, false
		}
	}
	for range max(0, r.IntN(6)-2) {
		s.Faults = append(s.Faults, Fault{
			Kind: Thief, At: seconds(r, Trouble), For: seconds(r, 3*time.Minute), Node: r.IntN(s.Racks * s.PerRack),
			GPUs: 1 + r.IntN(s.GPUs),
		})
	}
	s.Claims = r.IntN(4) == 0
	for _, j := range s.Jobs {
		if j.Native && j.Nodes > 1 && r.IntN(3) == 0 {
			s.Faults = append(s.Faults, Fault{
				Kind:  Scale,
				At:    j.At + seconds(r, 2*time.Minute),
				For:   time.Second + seconds(r, 3*time.Minute),
				Job:   j.Name,
				Ranks: 1 + r.IntN(j.Nodes-1),
			})
		}
	}
}

// drawTear is a scheduler that dies while it binds a gang, and whose successor finds no node for the rest.
func drawTear(r *rand.Rand, of Job) []Fault {
	bound := 1 + r.IntN(of.Nodes-1)
	return []Fault{
		{Kind: Kill, Job: of.Name, Bound: bound, Process: schedulerName, For: time.Second + seconds(r, time.Minute)},
		{Kind: CordonAll, Job: of.Name, Bound: bound, For: time.Minute + seconds(r, longest)},
	}
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
	case 1: // or begins in the middle of one
		f.At, f.Job, f.Bound = 0, of.Name, 1+r.IntN(2*of.Nodes)
		lasts = min(lasts, time.Minute)
	case 2: // or lasts for longer than any wait
		if r.IntN(2) == 0 {
			lasts = longest
		}
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
	case Thief, Scale: // not drawn here
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
