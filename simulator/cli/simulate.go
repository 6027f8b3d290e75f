package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/run/simulation"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/progress"
)

// replayOptions are the flags that simulate and compare have in common.
type replayOptions struct {
	names    simulation.Names
	options  simulation.Options
	declared string
	engine   string
	out      string
	progress string
	output   string
	costs    costOptions
}

func (o *replayOptions) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.names.Fleet, "fleet", "",
		"a built-in fleet (see lockstep fleet list), a file, or openb:NODES.csv")
	flags.StringVar(&o.names.Snapshot, "snapshot", "",
		"a file of lockstep snapshot, or of kwokctl, with what runs and waits there; instead of --fleet")
	flags.StringVar(&o.names.Trace, "trace", "",
		"the workload: philly, philly:FILE, acme-kalos, acme-seren, knavigator-53, fragment-then-gang, starving-512, "+
			"service, sweeps, gangs-N, k8s-gang, k8s-tas, FILE.jsonl or openb:PODS.csv")
	flags.Float64Var(&o.options.Load, "load", 1, "how many times as fast jobs come; how long they run stays")
	flags.Float64Var(&o.options.Estimates, "estimates", 0,
		"give jobs without an estimate one: their run time times a number drawn from 1 to this; 0 for none")
	flags.StringVar(&o.declared, "declared", "all",
		"the share of the jobs whose owners state their estimates, by tenant: all, half, none, or a number from 0 to 1")
	flags.BoolVar(
		&o.options.Wishes,
		"wishes",
		false,
		"give gangs without topology wishes such as are usual: required racks, preferred blocks, segments, NVLink domains",
	)
	flags.Float64Var(&o.options.Elastic, "elastic", 0,
		"the share of the gangs that may train with a quarter of their members, and take longer then: from 0 to 1")
	flags.IntVar(&o.options.First, "first", 0, "how many jobs of the trace are played, the first ones; 0 for all")
	flags.DurationVar(&o.options.DefaultRunTime, "run-time", time.Hour,
		"how long what waits in a snapshot runs, if it has no deadline")
	o.costs.add(flags)
	flags.StringVar(&o.engine, "engine", "",
		"direct (the decision core) or kube (the real kube-scheduler); the default is the scheduler's own")
	flags.StringVar(&o.out, "out", "", "the directory for results: scorecard, event log, report; the default is none")
	flags.StringVar(&o.progress, "progress", "auto", "how progress is shown: auto, screen, plain, json or none")
	addForm(command, &o.output)
}

// open reads the inputs, after the flags that are wrong by themselves.
func (o *replayOptions) open() (*simulation.Input, error) {
	if err := checkForm(o.output); err != nil {
		return nil, err
	}
	if !(o.options.Load > 0 && o.options.Load <= 1000) {
		return nil, &badinput.Error{
			Where: fmt.Sprintf("--load %g", o.options.Load), What: "there is no such load",
			Mend: "write a number above 0, such as 1.3, of at most 1000",
		}
	}
	if o.options.DefaultRunTime < time.Second {
		return nil, &badinput.Error{
			Where: "--run-time " + o.options.DefaultRunTime.String(), What: "nothing runs so short",
			Mend: "write a second or more, such as 1h",
		}
	}
	if !(o.options.Elastic >= 0 && o.options.Elastic <= 1) {
		return nil, &badinput.Error{
			Where: fmt.Sprintf("--elastic %g", o.options.Elastic), What: "that is no share of the gangs",
			Mend: "write a number from 0 to 1",
		}
	}
	if o.options.First < 0 {
		return nil, &badinput.Error{
			Where: fmt.Sprintf("--first %d", o.options.First), What: "there are no fewer jobs than none",
			Mend: "write how many jobs are played, or 0 for all",
		}
	}
	share, ok := declaredShare(o.declared)
	if !ok {
		return nil, &badinput.Error{
			Where: "--declared " + o.declared, What: "that is no share of the jobs",
			Mend: "write all, half, none, or a number from 0 to 1",
		}
	}
	o.options.Silent = 1 - share
	var err error
	if o.options.Costs, err = o.costs.settings(); err != nil {
		return nil, err
	}
	return simulation.Open(o.names, o.options)
}

// declaredShare reads the value of --declared.
func declaredShare(text string) (float64, bool) {
	switch text {
	case "all":
		return 1, true
	case "half":
		return 0.5, true
	case "none":
		return 0, true
	}
	share, err := strconv.ParseFloat(text, 64)
	return share, err == nil && share >= 0 && share <= 1
}

// show begins to show progress of so many runs.
func (o *replayOptions) show(
	ctx context.Context, env Environment, runs int,
) (context.Context, *progress.Progress, error) {
	form, err := progress.ParseForm(o.progress, env.Err, os.Getenv("TERM"))
	if err != nil {
		return ctx, nil, err
	}
	ctx, shown := progress.Start(ctx, progress.Options{
		Out: env.Err, In: env.In, Form: form, Clock: env.Clock, Runs: runs, Environment: os.Environ(),
	})
	return ctx, shown, nil
}

// simulateOptions are the flags of lockstep simulate.
type simulateOptions struct {
	replayOptions
	scheduler string
	seed      uint64
}

func newSimulate(env Environment) *cobra.Command {
	var options simulateOptions
	command := &cobra.Command{
		Use:   "simulate (--fleet FLEET | --snapshot FILE) --trace TRACE",
		Short: "Play a workload on a fleet in virtual time with the production scheduler, or another one",
		Long: "Play a workload on a fleet in virtual time, and print a scorecard.\n\n" +
			"Equal inputs and seeds give equal events on every machine. Exit code 1 says that gangs were left waiting, or that\n" +
			"a rule was broken.",
		Example: "  lockstep simulate --fleet knavigator-32 --trace knavigator-53\n" +
			"  lockstep simulate --fleet h100-64 --trace philly --load 1.3 --estimates 3 --out out/philly\n" +
			"  lockstep simulate --snapshot prod.gz --trace next-week.jsonl --engine kube -o json",
		Args: usage(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error { return options.run(command.Context(), env) },
	}
	options.add(command)
	flags := command.Flags()
	flags.StringVar(&options.scheduler, "scheduler", schedulers.Lockstep, "who decides: "+schedulers.Choices())
	flags.Uint64Var(&options.seed, "seed", 0, "decides what is drawn; 0 plays recorded traces as they were recorded")
	return command
}

func (o *simulateOptions) run(ctx context.Context, env Environment) (err error) {
	input, err := o.open()
	if err != nil {
		return err
	}
	ctx, shown, err := o.show(ctx, env, 1)
	if err != nil {
		return err
	}
	collectRarely()
	outcome, err := input.Run(ctx, simulation.Run{
		Scheduler: o.scheduler, Engine: o.engine, Seed: o.seed, Dir: o.out, Progress: shown, Wall: env.Clock,
	})
	closing := shown.Close()
	if outcome.Card.Scheduler != "" {
		if printed := o.print(env.Out, outcome.Card); err == nil {
			err = printed
		}
	}
	if err == nil {
		err = o.pointTo(env.Out)
	}
	switch {
	case err != nil:
		return err
	case closing != nil:
		return closing
	case failed(outcome.Card):
		return errUnplaced
	}
	return nil
}

// failed reports whether work was left unplaced, or a rule was broken. Workloads without arrival times may exceed the
// fleet's capacity.
func failed(card measure.Scorecard) bool {
	v := card.Violations
	return card.AllocationAtArrival == nil && card.Gangs.Pending > 0 ||
		v.PartialGangs+v.RequiredLevel+v.DRA+v.DoubleBooking+v.Unfinished > 0 // NVLink is among the required levels
}

func (o *simulateOptions) print(out io.Writer, card measure.Scorecard) error {
	if o.output == "json" {
		return printJSON(out, card)
	}
	return writeCard(out, card)
}

// pointTo prints the path of the results, once all of them are there.
func (o *simulateOptions) pointTo(out io.Writer) error {
	if o.out == "" || o.output == "json" {
		return nil
	}
	if _, err := fmt.Fprintf(out, "results: %s (open report.html)\n", o.out); err != nil {
		return fmt.Errorf("printing where the results are: %w", err)
	}
	return nil
}
