package importer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// New returns the scenario of a trace on an empty fleet. A level or a node that the fleet does not have, and an option
// out of its range, are bad input.
func New(f fleet.Fleet, t trace.Trace, options scenario.Options) (*scenario.Scenario, error) {
	s := newBuilder(&scenario.Scenario{
		Fleet:     f.Name,
		Trace:     t.Name,
		Source:    t.Source,
		Synthetic: t.Synthetic,
		Options:   withDefaults(options),
		Begin:     beginning(),
	})
	if err := s.addNodes(f, nodeOptions{}); err != nil {
		return nil, err
	}
	if err := s.addTrace(t); err != nil {
		return nil, err
	}
	return s.Scenario, nil
}

// beginning is Scenario.Begin for inputs without an instant.
func beginning() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// addTrace adds the jobs and events of a trace.
func (s *builder) addTrace(t trace.Trace) error {
	if err := checkOptions(s.Options); err != nil {
		return err
	}
	t, err := trace.Compress(t, s.Options.Load)
	if err != nil {
		return err
	}
	largest := int64(0)
	for _, total := range s.Ledger.Total {
		largest = max(largest, total[s.Accelerator])
	}
	divided, waiting := 0, make(map[string]bool, len(s.Jobs))
	for _, j := range s.Jobs {
		waiting[j.ID] = true
	}
	for _, of := range t.Jobs {
		if waiting[of.ID] {
			return &badinput.Error{
				Where: "job " + of.ID,
				What:  "a job of that name waits in the snapshot already",
				Mend:  "give it another id",
			}
		}
		whole := divide(of, largest)
		if whole.Pods() != of.Pods() {
			divided++
		}
		j, err := s.job(whole)
		if err != nil {
			return err
		}
		s.Jobs = append(s.Jobs, j)
	}
	s.drawEstimates()
	s.silence()
	s.addWishes()
	s.addCosts()
	s.addElastic()
	slices.SortStableFunc(s.Jobs, func(a, b scenario.Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.ID, b.ID))
	})
	if divided > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf(
			"pods of %d jobs asked for more than the %d accelerators that a node has, and were divided",
			divided,
			largest,
		))
	}
	if err := s.addEvents(t.Events); err != nil {
		return err
	}
	return s.addFailures()
}

// drawEstimates draws an estimate for each job that has none, if Options.Estimates is set. Jobs with an estimate draw
// too, so that one owner's estimate changes no other job's.
func (s *builder) drawEstimates() {
	factor := s.Options.Estimates
	if factor == 0 {
		return
	}
	chance := rand.New(rand.NewPCG(s.Options.Seed, streamEstimates))
	for i := range s.Jobs {
		// The conversion prevents fused operations, which round once where other machines round twice.
		drawn := 1 + float64(chance.Float64()*(factor-1))
		if s.Jobs[i].Estimate == 0 {
			s.Jobs[i].Estimate = roundUp(time.Duration(float64(s.Jobs[i].Duration) * drawn))
		}
	}
}

// streamEstimates is the stream of the seed from which estimates are drawn.
const streamEstimates = 11

// roundUp rounds up to whole seconds.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// divide spreads pods that request more accelerators than a node has over several nodes. MinCount, Min and the segment
// size, which count pods, grow with the number of pods.
func divide(of trace.Job, most int64) trace.Job {
	before := of.Pods()
	of.Podsets = slices.Clone(of.Podsets)
	for i, set := range of.Podsets {
		if most == 0 || int64(set.GPUs) <= most {
			continue
		}
		gpus := int64(set.Count) * int64(set.GPUs)
		count := (gpus + most - 1) / most
		of.Podsets[i] = trace.Podset{
			Count: int(
				count,
			),
			Min:    int((int64(set.Min)*count + int64(set.Count) - 1) / int64(set.Count)),
			GPUs:   int(most),
			CPU:    set.CPU * int64(set.Count) / count,
			Memory: set.Memory * int64(set.Count) / count,
		}
	}
	if after := of.Pods(); after != before {
		of.MinCount = (of.MinCount*after + before - 1) / before
		of.Segment.Size = (of.Segment.Size*after + before - 1) / before
	}
	return of
}

// submit returns when a trace's job arrives.
func (s *builder) submit(of trace.Job) time.Duration {
	if s.Options.Exact {
		return of.Submit
	}
	return of.Submit.Round(time.Second)
}

// job returns the gang of a trace's job.
func (s *builder) job(of trace.Job) (scenario.Job, error) {
	j := scenario.Job{
		ID: of.ID, Tenant: of.Tenant, Submit: s.submit(of), Duration: roundUp(of.Duration),
		Estimate: roundUp(of.Estimate), Priority: of.Priority, Preemptible: of.Preemptible, EndState: of.EndState,
		Grace: roundUp(of.Grace), Sweep: s.sweep(of),
		Gang: topology.Gang{
			Name: of.ID, Required: of.Required, Preferred: of.Preferred,
			Segment: topology.Segment{Size: of.Segment.Size, Level: of.Segment.Level},
		},
	}
	for _, level := range []string{of.Required, of.Preferred, of.Segment.Level} {
		if _, known := s.Ledger.Tree.Level(level); level != "" && !known {
			return scenario.Job{}, s.noLevel(of.ID, level)
		}
	}
	for _, set := range of.Podsets {
		demand := s.demand(set)
		shape := slices.IndexFunc(j.Gang.Shapes, func(o topology.Shape) bool { return slices.Equal(o.Demand, demand) })
		if shape < 0 {
			shape = len(j.Gang.Shapes)
			j.Gang.Shapes = append(j.Gang.Shapes, topology.Shape{Demand: demand, Barred: s.barred})
		}
		for range set.Count {
			j.Gang.Members = append(j.Gang.Members, topology.Member{
				Name: scenario.PodName(of.ID, len(j.Gang.Members)), Shape: shape,
			})
		}
		j.Accelerators += int64(set.Count) * int64(set.GPUs)
		if set.Min > 0 { // of the last podset
			j.Min = len(j.Gang.Members) - set.Count + set.Min
		}
	}
	j.Needed = len(j.Gang.Members)
	if of.MinCount > 0 {
		j.Needed = min(j.Needed, of.MinCount)
	}
	return j, nil
}

// sweep returns the sweep of a trace's job. Those of two tenants are two, although all jobs of a trace are in one
// namespace; names of tenants need not be values of labels.
func (s *builder) sweep(of trace.Job) scenario.Sweep {
	if of.Sweep == "" {
		return scenario.Sweep{}
	}
	if s.sweeps == nil {
		s.sweeps = make(map[[2]string]int)
	}
	key := [2]string{of.Tenant, of.Sweep}
	if s.sweeps[key] == 0 {
		s.sweeps[key] = len(s.sweeps) + 1
	}
	return scenario.Sweep{Name: scenario.Namespace + "/sweep-" + strconv.Itoa(s.sweeps[key]), Limit: of.Parallelism}
}

// demand returns the requests of a trace's pod.
func (s *builder) demand(set trace.Podset) topology.Capacity {
	out := make(topology.Capacity, len(s.Resources))
	out[0], out[1], out[2] = 1, set.CPU, set.Memory
	out[s.Accelerator] = int64(set.GPUs)
	return out
}

func (s *builder) noLevel(job, level string) error {
	return &badinput.Error{
		Where: "job " + job,
		What:  fmt.Sprintf("the fleet %s has no level %q", s.Fleet, level),
		Mend:  fmt.Sprintf("name one of %s, or another fleet", quoted(s.levelNames())),
	}
}

// addEvents adds the events of nodes of a trace.
func (s *builder) addEvents(events []trace.Event) error {
	for _, e := range events {
		event := scenario.Event{At: e.At.Round(time.Second), Kind: e.Kind}
		for _, name := range e.Nodes {
			node, ok := s.Ledger.Tree.Index(name)
			if !ok {
				return &badinput.Error{
					Where: fmt.Sprintf("event %s at %s", e.Kind, e.At),
					What:  fmt.Sprintf("the fleet %s has no node %s", s.Fleet, name),
					Mend:  "name a node that lockstep fleet generate prints, or another fleet",
				}
			}
			event.Nodes = append(event.Nodes, node)
		}
		slices.Sort(event.Nodes)
		s.Events = append(s.Events, event)
	}
	return nil
}
