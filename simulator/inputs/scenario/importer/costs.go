package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// checkCosts refuses settings out of their range.
func checkCosts(c cost.Settings) error {
	_, known := cost.NetworkOf(c.Network)
	switch {
	case c.Network != "" && !known:
		return &badinput.Error{
			What: fmt.Sprintf("there is no network %q", c.Network),
			Mend: "name one of " + strings.Join(cost.NetworkNames(), ", ") + ", or none for that of the fleet",
		}
	case c.Slowdown < 0 || c.Startup < 0 || c.Failures < 0:
		return &badinput.Error{What: "a cost of time is below 0", Mend: "write off, on or a number above 0"}
	case c.Checkpoint < 0 || c.Checkpoint > int64(trace.MostTime/time.Second):
		return &badinput.Error{
			What: fmt.Sprintf("checkpoints cannot be %d s apart", c.Checkpoint),
			Mend: "write a duration of a second or more, such as 30m, or 0 for no checkpoints",
		}
	}
	return nil
}

// addCosts makes jobs cost time as the options say. Estimates are the owners' knowledge of their jobs, slow placements
// and restarts included, so that they stay bounds.
func (s *builder) addCosts() {
	of := &s.Options.Costs
	if of.Slowdown > 0 {
		of.Network = cmp.Or(of.Network, cost.NetworkFor(s.Fleet, cost.SharesNVLink(s.Ledger.Tree)))
	} else {
		of.Network = "" // it decides nothing
	}
	if of.Off() {
		return
	}
	if of.Slowdown > 0 || of.Startup > 0 {
		network, _ := cost.NetworkOf(of.Network)
		s.Costs = cost.New(cost.Options{
			Tree: s.Ledger.Tree, Total: s.Ledger.Total, Accelerator: s.Accelerator, Network: network,
			Slowdown: of.Slowdown, Startup: of.Startup,
		})
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.Bound != nil || j.Duration == scenario.Forever {
			continue
		}
		j.Share = s.Costs.Share(cost.ClassOf(j.Tenant, j.ID, j.Accelerators))
		j.Saves = time.Duration(of.Checkpoint) * time.Second
		j.Replaces = of.Replace && j.Min == 0 && j.Needed == len(j.Gang.Members) && j.Needed > 1
		if j.Estimate > 0 {
			slowest := s.Slowest(i)
			j.Estimate = time.Duration(slowest.Takes(int64(j.Estimate/time.Second))) * time.Second
		}
	}
}

// addFailures draws failures of nodes from the beginning until the last submission and the longest run after it.
func (s *builder) addFailures() error {
	rate := s.Options.Costs.Failures
	if rate == 0 || len(s.Jobs) == 0 {
		return nil
	}
	if len(s.Events) > 0 {
		return eventsTwice("the trace")
	}
	last, longest := time.Duration(0), time.Duration(0)
	for i := range s.Jobs {
		last = max(last, s.Jobs[i].Submit)
		if s.Jobs[i].Duration != scenario.Forever {
			longest = max(longest, s.Jobs[i].Duration)
		}
	}
	until := int64((last + longest) / time.Second)
	for _, o := range cost.Failures(s.Ledger.Tree, s.Options.Seed, until, rate) {
		s.Events = append(s.Events,
			scenario.Event{At: time.Duration(o.At) * time.Second, Kind: trace.Fail, Nodes: o.Nodes},
			scenario.Event{At: time.Duration(o.Until) * time.Second, Kind: trace.Return, Nodes: o.Nodes},
		)
	}
	slices.SortStableFunc(s.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	return nil
}

// eventsTwice refuses failures beside recorded ones.
func eventsTwice(where string) error {
	return &badinput.Error{
		What: where + " has events of nodes, and failures would be drawn beside them",
		Mend: "leave out --failures, or the events",
	}
}
