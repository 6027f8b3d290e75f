// Command bench-failover measures the time without a binding when the leader of two lockstep-schedulers is asked to
// stop, is killed, or gets no answer for five seconds, while gangs start and end on an embedded cluster of 5,000 nodes.
// Profile, client limits and lease are the shipped ones.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/bench/failover"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

func main() {
	log.SetLogger(klog.NewKlogr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	say := func(line string) { _, _ = fmt.Fprintln(out, line) }
	plan := failover.Plan{Settling: 15 * time.Second, Say: say, Clock: clock.RealClock{}}
	flags := flag.NewFlagSet("bench-failover", flag.ContinueOnError)
	dir := flags.String("dir", "out/bench", "folder for the cluster's state")
	of := flags.String("fleet", "k8s-5000", "the fleet, by name or file")
	flags.IntVar(&plan.Rounds, "rounds", 3, "repetitions of each event")
	flags.IntVar(&plan.Running, "running", 500, "gangs of four that run all the time")
	flags.IntVar(&plan.Waiting, "waiting", 100, "gangs of four that fit nowhere")
	flags.DurationVar(
		&plan.Every,
		"every",
		200*time.Millisecond,
		"time between two gangs that come, run for five seconds and go",
	)
	flags.DurationVar(
		&plan.StandbyAfter,
		"standby-after",
		10*time.Second,
		"time between the end of a leader and the start of the next standby",
	)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	if plan.Rounds < 1 || plan.Running < 0 || plan.Waiting < 0 || plan.Every <= 0 || plan.StandbyAfter < 0 {
		return errors.New("-rounds and -every must be above 0, -running, -waiting and -standby-after not below")
	}
	machines, err := fleet.Open(*of)
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: filepath.Join(
			*dir,
			"failover",
		),
		Mode:    probe.Full,
		Nodes:   machines.Nodes,
		Slices:  machines.Slices,
		Classes: machines.Classes,
		Report:  say,
	})
	if err != nil {
		return err
	}
	defer c.Stop(context.WithoutCancel(ctx))
	ctx, cancel := c.Alive(ctx)
	defer cancel()
	results, err := failover.Measure(ctx, c, plan)
	if err != nil {
		return err
	}
	return tabulate(results, say)
}

// tabulate prints a table. It is an error if a bound was exceeded.
func tabulate(results []failover.Result, say func(string)) error {
	say("| the leader | nothing bound, median, s | longest, s | bound, s |\n|---|---:|---:|---:|")
	var late error
	for _, r := range results {
		bound := ""
		if r.Within > 0 {
			bound = fmt.Sprintf("%.0f", r.Within.Seconds())
		}
		say(fmt.Sprintf("| %s | %.2f | %.2f | %s |", r.Event, r.Median().Seconds(), r.Longest().Seconds(), bound))
		if r.Within > 0 && r.Longest() > r.Within {
			late = fmt.Errorf(
				"the leader %s: nothing was bound for %v, which is more than %v",
				r.Event,
				r.Longest(),
				r.Within,
			)
		}
	}
	return late
}
