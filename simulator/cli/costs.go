package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// costOptions are the flags that make placements, starts and failures cost time.
type costOptions struct {
	slowdown, network, startup, failures, disruption string
	checkpoint                                       time.Duration
}

func (o *costOptions) add(flags *pflag.FlagSet) {
	const factor = "off, on, or a number that multiplies what is published"
	flags.StringVar(&o.slowdown, "slowdown", "off",
		"let gangs on bad places run longer, by the boundaries that they cross: "+factor)
	flags.StringVar(
		&o.network,
		"network",
		"",
		"the links that --slowdown reckons with: "+strings.Join(
			cost.NetworkNames(),
			", ",
		)+"; the default is the fleet's",
	)
	flags.StringVar(&o.startup, "startup", "off", "let starts and restarts take time: "+factor)
	flags.DurationVar(&o.checkpoint, "checkpoint", 0,
		"let every job of the trace write a checkpoint so often, such as 30m, from which it resumes; 0 for never")
	flags.StringVar(&o.failures, "failures", "off", "let nodes, NVLink domains and racks fail, by the seed: "+factor)
	flags.StringVar(
		&o.disruption,
		"on-disruption",
		restart,
		"what Lockstep does with a gang that loses a node: restart, or replace for the lost members alone; others restart it",
	)
}

// The policies for gangs that lose a node, by their names in lockstep.dev/on-disruption.
const (
	restart = "restart"
	replace = "replace"
)

// settings reads the flags.
func (o *costOptions) settings() (cost.Settings, error) {
	s := cost.Settings{
		Network: o.network, Checkpoint: int64(o.checkpoint / time.Second), Replace: o.disruption == replace,
	}
	for _, f := range []struct {
		flag, text string
		to         *int64
	}{
		{"--slowdown", o.slowdown, &s.Slowdown},
		{"--startup", o.startup, &s.Startup},
		{"--failures", o.failures, &s.Failures},
	} {
		value, ok := cost.ParseFactor(f.text)
		if !ok {
			return s, &badinput.Error{
				Where: f.flag + " " + f.text, What: "this is no factor",
				Mend: "write off, on or a number from 0.001 to 1000, such as 0.5",
			}
		}
		*f.to = value
	}
	_, known := cost.NetworkOf(o.network)
	switch {
	case o.network != "" && !known:
		return s, &badinput.Error{
			Where: "--network " + o.network, What: "there is no such network",
			Mend: "use " + strings.Join(cost.NetworkNames(), ", ") + ", or leave it out",
		}
	case o.network != "" && s.Slowdown == 0:
		return s, &badinput.Error{
			Where: "--network " + o.network, What: "links decide nothing without --slowdown",
			Mend: "add --slowdown on, or leave out --network",
		}
	case o.disruption != restart && o.disruption != replace:
		return s, &badinput.Error{
			Where: "--on-disruption " + o.disruption, What: "there is no such policy", Mend: "write restart or replace",
		}
	case o.checkpoint < 0 || o.checkpoint%time.Second != 0:
		return s, &badinput.Error{
			Where: "--checkpoint " + o.checkpoint.String(), What: "checkpoints are whole seconds apart",
			Mend: "write a duration such as 30m, or 0 for no checkpoints",
		}
	}
	return s, nil
}

// writeCosts is the part of a scorecard about the costs of time.
func writeCosts(say func(what, format string, values ...any), card measure.Scorecard) {
	c := card.Costs
	if c == nil {
		return
	}
	say("costs", "%s", c.Settings)
	say(
		"not useful",
		"GPU-hours of the window: slowdown %s (mean %.3f), startup %s, lost to preemption %s, to failures %s",
		number(c.SlowdownGPUHours),
		c.MeanSlowdown,
		number(c.StartupGPUHours),
		number(c.PreemptedGPUHours),
		number(c.DisruptedGPUHours),
	)
	say("", "%s", fmt.Sprintf("%d restarts, %d failures of nodes", c.Restarts, c.FailedNodes))
}
