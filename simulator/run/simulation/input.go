package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// Names are the users' names of their inputs: a fleet or a snapshot, and a trace.
type Names struct {
	// Fleet is a built-in one, a file, or openb:NODES.csv. Snapshot is a file of lockstep snapshot or of kwokctl,
	// instead of it.
	Fleet, Snapshot string
	// Trace is the name that trace.Open takes, or openb:PODS.csv. A snapshot needs none.
	Trace string
}

// Options configure how the inputs are played, by every scheduler alike.
type Options struct {
	// Load and Estimates are those of scenario.Options.
	Load, Estimates float64
	// DefaultRunTime is that of scenario.Options, for snapshots. Another key would change the config_hash of every
	// result.
	DefaultRunTime time.Duration `json:"Unsaid"`
	// Quick plays the most contended stretch of the trace only, at most QuickJobs.
	Quick bool
	// Silent and Wishes are those of scenario.Options. Like Elastic and First they are left out of the config_hash if
	// they are not set, so that the hashes of older results stay.
	Silent float64 `json:",omitempty"`
	Wishes bool    `json:",omitempty"`
	// Elastic is that of scenario.Options.
	Elastic float64 `json:",omitempty"`
	// First is the number of the trace's jobs that are played, the first ones; 0 for all.
	First int `json:",omitempty"`
	// Costs are those of scenario.Options. The key is left out if nothing costs time, so that such runs have the
	// config_hash that they had before there were costs.
	Costs cost.Settings `json:",omitzero"`
}

// QuickJobs is the largest number of jobs of a quick run.
const QuickJobs = 5000

// openbPrefix begins the names of openb's lists.
const openbPrefix = "openb:"

// Input is inputs that were read.
type Input struct {
	names   Names
	options Options
	// fleet is that of gangs, snapshot the other way to have one; nodes and pods are openb's instead.
	fleet    fleet.Fleet
	snapshot *capture.Snapshot
	nodes    []trace.OpenbNode
	pods     []trace.OpenbPod
	// commit is that of this binary.
	commit string
}

// Open reads the inputs. Missing, contradictory or unreadable input is bad input.
func Open(names Names, options Options) (*Input, error) {
	if err := names.check(); err != nil {
		return nil, err
	}
	in := &Input{names: names, options: options, commit: commit()}
	var err error
	switch {
	case in.Shared():
		return in, in.openLists()
	case names.Snapshot != "":
		snapshot, failed := capture.ReadFile(names.Snapshot)
		in.snapshot, err = &snapshot, failed
	default:
		in.fleet, err = fleet.Open(names.Fleet)
	}
	if err != nil {
		return nil, err
	}
	return in, nil
}

func (n Names) check() error {
	nodes, pods := strings.HasPrefix(n.Fleet, openbPrefix), strings.HasPrefix(n.Trace, openbPrefix)
	switch {
	case n.Fleet == "" && n.Snapshot == "":
		return &badinput.Error{
			What: "there is no cluster to play on",
			Mend: "add --fleet NAME (see lockstep fleet list) or --snapshot FILE",
		}
	case n.Fleet != "" && n.Snapshot != "":
		return &badinput.Error{What: "there are a fleet and a snapshot", Mend: "leave out --fleet or --snapshot"}
	case n.Trace == "" && n.Snapshot == "":
		return &badinput.Error{
			What: "there is no workload", Mend: "add --trace NAME, such as philly, knavigator-53 or a file of JSONL",
		}
	case nodes != pods:
		return &badinput.Error{
			What: "pods of openb share GPUs, and need a fleet of openb; no other workload can be played there",
			Mend: "name both as openb:FILE, or neither",
		}
	}
	return nil
}

// Shared reports whether the pods share GPUs, as openb's do.
func (in *Input) Shared() bool { return strings.HasPrefix(in.names.Fleet, openbPrefix) }

func (in *Input) openLists() error {
	if in.options.Load != 0 && in.options.Load != 1 || in.options.Estimates != 0 {
		return &badinput.Error{
			What: "openb's pods have no time, so there are neither loads nor estimates",
			Mend: "leave out --load and --estimates",
		}
	}
	if in.options.Silent != 0 || in.options.Wishes || in.options.Elastic != 0 || in.options.First != 0 {
		return &badinput.Error{
			What: "openb's pods state no deadlines, have no topology, and are drawn until they ask for all GPUs",
			Mend: "leave out --declared, --wishes, --elastic and --first",
		}
	}
	if !in.options.Costs.Off() {
		return &badinput.Error{
			What: "openb's pods have no time, so nothing costs any",
			Mend: "leave out --slowdown, --startup, --checkpoint and --failures",
		}
	}
	var err error
	if in.nodes, err = trace.OpenbNodes(strings.TrimPrefix(in.names.Fleet, openbPrefix)); err != nil {
		return err
	}
	in.pods, err = trace.OpenbPods(strings.TrimPrefix(in.names.Trace, openbPrefix))
	return err
}

// Nodes returns the number of nodes.
func (in *Input) Nodes() int {
	switch {
	case in.Shared():
		return len(in.nodes)
	case in.snapshot != nil:
		return len(in.snapshot.Nodes)
	}
	return len(in.fleet.Nodes)
}

// scenario returns the scenario of a seed. The inputs must be gangs.
func (in *Input) scenario(seed uint64) (*scenario.Scenario, error) {
	var workload *trace.Trace
	cut := ""
	if in.names.Trace != "" {
		t, err := trace.Open(in.names.Trace, seed)
		if err != nil {
			return nil, err
		}
		if n := len(t.Jobs); in.options.Quick && n > QuickJobs {
			t = t.Contended(QuickJobs)
			cut = fmt.Sprintf("quick: the most contended %d of %d jobs", QuickJobs, n)
		}
		if n := len(t.Jobs); in.options.First > 0 && n > in.options.First {
			t.Jobs = t.Jobs[:in.options.First]
			cut = fmt.Sprintf("the first %d of %d jobs", in.options.First, n)
		}
		workload = &t
	}
	options := scenario.Options{
		Seed:           seed,
		Load:           in.options.Load,
		Estimates:      in.options.Estimates,
		Silent:         in.options.Silent,
		Wishes:         in.options.Wishes,
		Elastic:        in.options.Elastic,
		DefaultRunTime: in.options.DefaultRunTime,
		Costs:          in.options.Costs,
	}
	var s *scenario.Scenario
	var err error
	if in.snapshot != nil {
		s, err = importer.FromSnapshot(in.snapshot, workload, options)
	} else {
		s, err = importer.New(in.fleet, *workload, options)
	}
	if err == nil && cut != "" {
		s.Notes = append(s.Notes, cut)
	}
	return s, err
}
