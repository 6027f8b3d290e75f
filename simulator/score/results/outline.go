package results

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// Outline is the content of scene.json: enough of a scenario to interpret the numbers in events. Durations are seconds
// since the scenario's beginning; -1 stands for never.
type Outline struct {
	Fleet     string  `json:"fleet"`
	Trace     string  `json:"trace"`
	Source    string  `json:"source"`
	Synthetic bool    `json:"synthetic"`
	Seed      uint64  `json:"seed"`
	Load      float64 `json:"load"`
	Estimates float64 `json:"estimates"`
	// Begin is the instant that seconds are counted from.
	Begin time.Time `json:"begin"`
	// Accelerator is the resource that counts accelerators.
	Accelerator string `json:"accelerator"`
	// Levels are the fleet's, outermost first, without that of single nodes.
	Levels []Level `json:"levels"`
	// Nodes are by their number in the tree, Jobs and Running in the scenario's order.
	Nodes   []Node       `json:"nodes"`
	Jobs    []Job        `json:"jobs"`
	Running []Running    `json:"running,omitempty"`
	Events  []Occurrence `json:"events,omitempty"`
	Notes   []string     `json:"notes,omitempty"`
}

// Level is a level of the fleet.
type Level struct {
	Name string `json:"name"`
	// Accelerator is set for a level of the accelerators' own network (NVLink).
	Accelerator bool `json:"accelerator,omitempty"`
}

// Node is a node.
type Node struct {
	Name         string `json:"name"`
	Accelerators int64  `json:"accelerators"`
	// Domains has the last part of the domain's path for each level, empty where the node lacks the label.
	Domains []string `json:"domains,omitempty"`
	Closed  bool     `json:"closed,omitempty"`
}

// Job is a job of the workload.
type Job struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant,omitempty"`
	// Submit, Duration and Estimate are seconds; an estimate of 0 is none.
	Submit       float64 `json:"submit"`
	Duration     float64 `json:"duration"`
	Estimate     float64 `json:"estimate,omitempty"`
	Members      int     `json:"members"`
	Accelerators int64   `json:"accelerators"`
	Priority     int32   `json:"priority,omitempty"`
	Required     string  `json:"required,omitempty"`
	Preferred    string  `json:"preferred,omitempty"`
}

// Running describes a job that runs at the beginning.
type Running struct {
	Name         string  `json:"name"`
	Accelerators int64   `json:"accelerators"`
	Ends         float64 `json:"ends"`
	Nodes        []int   `json:"nodes"`
}

// Occurrence is an event of nodes in the scenario.
type Occurrence struct {
	At    float64 `json:"t"`
	Kind  string  `json:"kind"`
	Nodes []int   `json:"nodes"`
}

// Outlined makes the outline of a scenario.
func Outlined(s *scenario.Scenario) Outline {
	o := Outline{
		Fleet: s.Fleet, Trace: s.Trace, Source: s.Source, Synthetic: s.Synthetic, Notes: s.Notes, Begin: s.Begin,
		Seed: s.Options.Seed, Load: s.Options.Load, Estimates: s.Options.Estimates,
		Nodes: make([]Node, s.Ledger.Len()), Jobs: make([]Job, len(s.Jobs)), Levels: []Level{},
	}
	if o.Load == 0 {
		o.Load = 1
	}
	if s.Accelerator < len(s.Resources) {
		o.Accelerator = s.Resources[s.Accelerator]
	}
	if s.Ledger.Tree != nil {
		for _, level := range s.Ledger.Tree.Levels() {
			o.Levels = append(o.Levels, Level{Name: level.Name, Accelerator: level.Accelerator})
		}
	}
	for i := range o.Nodes {
		o.Nodes[i] = outlinedNode(s, i, len(o.Levels))
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		o.Jobs[i] = Job{
			ID: j.ID, Tenant: j.Tenant, Submit: seconds(j.Submit), Duration: seconds(j.Duration),
			Estimate: seconds(j.Estimate), Members: len(j.Gang.Members), Accelerators: j.Accelerators,
			Priority: j.Priority, Required: j.Gang.Required, Preferred: j.Gang.Preferred,
		}
	}
	for _, r := range s.Running {
		nodes := make([]int, len(r.Holds))
		for i, held := range r.Holds {
			nodes[i] = held.Node
		}
		o.Running = append(o.Running, Running{r.Name, r.Accelerators, seconds(r.Ends), nodes})
	}
	for _, e := range s.Events {
		o.Events = append(o.Events, Occurrence{seconds(e.At), string(e.Kind), e.Nodes})
	}
	return o
}

func outlinedNode(s *scenario.Scenario, i, levels int) Node {
	n := Node{Name: s.Ledger.Tree.Node(i), Accelerators: s.Ledger.Total[i][s.Accelerator], Closed: s.Closed[i]}
	n.Domains = make([]string, levels)
	for level := range levels {
		if domain, ok := s.Ledger.Tree.Domain(i, level); ok {
			n.Domains[level] = domain.Path[len(domain.Path)-1]
		}
	}
	return n
}

// seconds is a duration as JSON has it.
func seconds(d time.Duration) float64 {
	if d == scenario.Forever {
		return -1
	}
	return d.Seconds()
}
