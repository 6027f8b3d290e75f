package scene

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-project/lockstep/simulator/badinput"
	"github.com/lockstep-project/lockstep/simulator/fleet"
	"github.com/lockstep-project/lockstep/simulator/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// New makes the scene of a trace on an empty fleet. What cannot be played (a level that the fleet does not have, an event of a
// node that is not there, a load out of its range) is bad input.
func New(f fleet.Fleet, t trace.Trace, options Options) (*Scene, error) {
	s := &stage{Scene: &Scene{
		Fleet:     f.Name,
		Trace:     t.Name,
		Source:    t.Source,
		Synthetic: t.Synthetic,
		Options:   options.whole(),
		Begin:     beginning(),
	}}
	if err := s.settle(f, ground{}); err != nil {
		return nil, err
	}
	if err := s.add(t); err != nil {
		return nil, err
	}
	return s.Scene, nil
}

// beginning is the instant at which scenes begin that are of no certain one.
func beginning() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// whole is the options with what they stand for.
func (o Options) whole() Options {
	o.Load, o.Unsaid = cmp.Or(o.Load, 1), cmp.Or(o.Unsaid, time.Hour)
	return o
}

// check refuses what is out of its range; the load is for trace.Compress to say.
func (o Options) check() error {
	switch {
	case o.Estimates != 0 && !(o.Estimates >= 1 && o.Estimates <= 1000):
		return &badinput.Error{
			What: "estimates of " + strconv.FormatFloat(o.Estimates, 'g', -1, 64) + " times the duration cannot be had",
			Mend: "write a number from 1 to 1000, or 0 for no estimates",
		}
	case o.Unsaid < 0 || o.Unsaid > trace.MostTime:
		return &badinput.Error{
			What: fmt.Sprintf(
				"what waits cannot run for %s",
				o.Unsaid,
			),
			Mend: "write a duration above 0, such as 1h, or 0 for that",
		}
	}
	return nil
}

// add lets the jobs and events of a trace come.
func (s *stage) add(t trace.Trace) error {
	if err := s.Options.check(); err != nil {
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
	s.estimate()
	slices.SortStableFunc(s.Jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.ID, b.ID))
	})
	if divided > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf(
			"pods of %d jobs asked for more than the %d accelerators that a node has, and were divided",
			divided,
			largest,
		))
	}
	return s.happens(t.Events)
}

// estimate gives jobs without an estimate one, if they are to have one. Each job has its draw, whether it needs it or not.
func (s *stage) estimate() {
	factor := s.Options.Estimates
	if factor == 0 {
		return
	}
	chance := rand.New(rand.NewPCG(s.Options.Seed, streamEstimates))
	for i := range s.Jobs {
		// The conversion keeps machines from rounding once where others round twice.
		drawn := 1 + float64(chance.Float64()*(factor-1))
		if s.Jobs[i].Estimate == 0 {
			s.Jobs[i].Estimate = up(time.Duration(float64(s.Jobs[i].Duration) * drawn))
		}
	}
}

// streamEstimates is the stream of the seed from which estimates are drawn.
const streamEstimates = 11

// up rounds up to whole seconds.
func up(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// divide gives pods that ask for more accelerators than a node has to several nodes. What is said in numbers of pods (with how many it
// may run, how many make a segment) is said of as many more.
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
			Count: int(count), GPUs: int(most),
			CPU: set.CPU * int64(set.Count) / count, Memory: set.Memory * int64(set.Count) / count,
		}
	}
	if after := of.Pods(); after != before {
		of.MinCount = (of.MinCount*after + before - 1) / before
		of.Segment.Size = (of.Segment.Size*after + before - 1) / before
	}
	return of
}

// job is a gang that asks for these pods.
func (s *stage) job(of trace.Job) (Job, error) {
	j := Job{
		ID: of.ID, Tenant: of.Tenant, Submit: of.Submit.Round(time.Second), Duration: up(of.Duration),
		Estimate: up(of.Estimate), Priority: of.Priority, Preemptible: of.Preemptible, EndState: of.EndState,
		Gang: topology.Gang{
			Name: of.ID, Required: of.Required, Preferred: of.Preferred,
			Segment: topology.Segment{Size: of.Segment.Size, Level: of.Segment.Level},
		},
	}
	for _, level := range []string{of.Required, of.Preferred, of.Segment.Level} {
		if _, known := s.Ledger.Tree.Level(level); level != "" && !known {
			return Job{}, s.noLevel(of.ID, level)
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
				Name: PodName(of.ID, len(j.Gang.Members)), Shape: shape,
			})
		}
		j.Accelerators += int64(set.Count) * int64(set.GPUs)
	}
	j.Needed = len(j.Gang.Members)
	if of.MinCount > 0 {
		j.Needed = min(j.Needed, of.MinCount)
	}
	return j, nil
}

// demand is what a pod of a trace takes.
func (s *stage) demand(set trace.Podset) topology.Capacity {
	out := make(topology.Capacity, len(s.Resources))
	out[0], out[1], out[2] = 1, set.CPU, set.Memory
	out[s.Accelerator] = int64(set.GPUs)
	return out
}

// PodName is the name of the pod of a rank.
func PodName(job string, rank int) string { return job + "-" + strconv.Itoa(rank) }

func (s *stage) noLevel(job, level string) error {
	return &badinput.Error{
		Where: "job " + job,
		What:  fmt.Sprintf("the fleet %s has no level %q", s.Fleet, level),
		Mend:  fmt.Sprintf("name one of %s, or another fleet", quoted(s.levelNames())),
	}
}

// happens takes over events of nodes.
func (s *stage) happens(events []trace.Event) error {
	for _, e := range events {
		event := Event{At: e.At.Round(time.Second), Kind: e.Kind}
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
