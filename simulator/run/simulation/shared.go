package simulation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/policy/openb"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/results"
	"github.com/lockstep-project/lockstep/topology"
)

// runShared plays openb's pods, which share GPUs and have no time. In the log an arrival is a second.
func (in *Input) runShared(ctx context.Context, r Run) (Outcome, error) {
	if r.Engine != "" && r.Engine != schedulers.Direct {
		return Outcome{}, &badinput.Error{
			Where: "--engine " + r.Engine, What: "Kubernetes does not share GPUs among pods, so it cannot play openb",
			Mend: "leave out --engine",
		}
	}
	played, err := openb.NewScene(in.nodes, in.pods, r.Seed)
	if err != nil {
		return Outcome{}, err
	}
	var arrivals []openb.Event
	began := r.Wall.Now()
	result, err := openb.Run(played, r.Scheduler, func(e openb.Event) { arrivals = append(arrivals, e) })
	if err != nil {
		return Outcome{}, err
	}
	wall := r.Wall.Since(began).Seconds()
	header, err := in.head(r.Scheduler, schedulers.Direct, string(result.Tie))
	if err != nil {
		return Outcome{}, err
	}
	s, err := in.sharedScene(arrivals, r.Seed)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Card: sharedCard(s, header, result, wall)}
	if failed := ctx.Err(); failed != nil {
		out.Card.Partial = "ended before it was written: " + context.Cause(ctx).Error()
	}
	if r.Dir == "" {
		return out, context.Cause(ctx)
	}
	kept, err := results.Create(r.Dir, s, results.Options{Card: out.Card})
	if err != nil {
		return out, err
	}
	tell(arrivals, s, kept)
	return out, errors.Join(context.Cause(ctx), kept.Finish(out.Card, page(out, nil)))
}

// sharedScene returns the arrivals, for the log: nodes below no network, and pods that run for ever. Parts of GPUs are
// rounded up.
func (in *Input) sharedScene(arrivals []openb.Event, seed uint64) (*scenario.Scenario, error) {
	s := &scenario.Scenario{
		Fleet: in.names.Fleet, Trace: in.names.Trace, Options: scenario.Options{Seed: seed, Load: 1},
		Source:    "openb (Alibaba, ATC '23; Apache-2.0), arrivals without time, tuned to 130 % of the GPUs",
		Resources: []string{"nvidia.com/gpu"},
	}
	names := make([]topology.Node, len(in.nodes))
	for i, node := range in.nodes {
		names[i] = topology.Node{Name: node.Name}
	}
	var err error
	if s.Ledger.Tree, err = topology.NewTree(nil, names); err != nil {
		return nil, fmt.Errorf("indexing openb's nodes: %w", err)
	}
	s.Closed = make([]bool, len(in.nodes))
	s.Ledger.Total = make([]topology.Capacity, len(in.nodes))
	for _, node := range in.nodes {
		at, _ := s.Ledger.Tree.Index(node.Name)
		s.Ledger.Total[at] = topology.Capacity{int64(node.GPUs)}
	}
	for i, arrival := range arrivals {
		s.Jobs = append(s.Jobs, scenario.Job{
			ID: arrival.Pod + "#" + strconv.Itoa(i), Submit: time.Duration(i) * time.Second, Duration: scenario.Forever,
			Gang: topology.Gang{Members: make([]topology.Member, 1)}, Needed: 1, Accelerators: int64(len(arrival.GPUs)),
		})
	}
	return s, nil
}

// tell reports the arrivals.
func tell(arrivals []openb.Event, s *scenario.Scenario, to engine.Watcher) {
	for i, arrival := range arrivals {
		event := engine.Event{At: s.Jobs[i].Submit, Kind: engine.Submitted, Job: i, Running: engine.None}
		to.Happens(event)
		event.Kind = engine.Refused
		if node, placed := s.Ledger.Tree.Index(arrival.Node); placed {
			event.Kind, event.Nodes = engine.Started, []int{node}
		}
		to.Happens(event)
	}
}

// sharedCard is the scorecard of a workload without time.
func sharedCard(s *scenario.Scenario, header measure.Header, result openb.Result, wall float64) measure.Scorecard {
	card := measure.Scorecard{
		Scheduler: header.Scheduler, Engine: header.Engine, Fleet: list(s.Fleet), Trace: list(s.Trace),
		Seed: s.Options.Seed, Commit: header.Commit, ConfigHash: header.ConfigHash, Source: s.Source, Load: 1,
		Nodes: s.Ledger.Len(), GPUs: s.GPUs(), TieRule: header.TieRule, Machine: header.Machine,
		Gangs: measure.Gangs{
			Submitted: result.Arrived, Placed: result.Placed, Pending: result.Arrived - result.Placed,
		},
		Pods:                measure.Pods{Placed: result.Placed},
		AllocationAtArrival: make(map[string]float64),
	}
	for _, mark := range openb.Marks() {
		card.AllocationAtArrival[strconv.Itoa(mark)] = result.At(mark).Allocated
	}
	end := result.At(openb.Marks()[len(openb.Marks())-1])
	card.Utilization.Peak, card.Fragmentation.End = end.Allocated/100, end.FragmentedOfFree/100
	card.Throughput.WallSeconds = wall
	if wall > 0 {
		card.Throughput.PodsPerSecond = float64(result.Arrived) / wall
		card.Throughput.GangsPerSecond = card.Throughput.PodsPerSecond
	}
	return card
}

// list is the name of a list, without the folder that it lies in on this machine.
func list(name string) string {
	return openbPrefix + filepath.Base(strings.TrimPrefix(name, openbPrefix))
}
