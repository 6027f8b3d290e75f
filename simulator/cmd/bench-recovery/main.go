// Command bench-recovery measures the time for which a large job is without one of its ranks when a node is lost, on
// embedded clusters with the shipped profile and client limits: with free nodes, with none, and when all ranks start
// again.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/bench/recovery"
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
	plan := recovery.Plan{Say: say, Clock: clock.RealClock{}}
	flags := flag.NewFlagSet("bench-recovery", flag.ContinueOnError)
	dir := flags.String("dir", "out/bench", "folder for the cluster's state")
	of := flags.String("fleet", "c2", "the fleet whose first nodes are taken, by name or file")
	sizes := flags.String("ranks", "250,2500", "sizes of the job, separated by commas; each has a fifth more nodes")
	flags.IntVar(&plan.Losses, "losses", 30, "nodes lost for each figure")
	flags.IntVar(&plan.Restarts, "restarts", 3, "nodes lost by a job of which all ranks start again")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	if plan.Losses < 1 || plan.Restarts < 1 {
		return fmt.Errorf("-losses and -restarts must be 1 or more, and are %d and %d", plan.Losses, plan.Restarts)
	}
	machines, err := fleet.Open(*of)
	if err != nil {
		return err
	}
	gpus := machines.Nodes[0].Status.Allocatable["nvidia.com/gpu"]
	plan.Accelerators = gpus.Value()
	var results []recovery.Result
	for size := range strings.SplitSeq(*sizes, ",") {
		plan.Ranks, err = strconv.Atoi(size)
		if most := len(machines.Nodes) * 5 / 6; err != nil || plan.Ranks < 10 || plan.Ranks > most {
			return fmt.Errorf(
				"-ranks: %q is not a number from 10 to %d, which is what the fleet has room for",
				size,
				most,
			)
		}
		part, err := measure(ctx, filepath.Join(*dir, "recovery"), machines.Nodes[:plan.Ranks*6/5], plan)
		if err != nil {
			return err
		}
		results = append(results, part...)
	}
	return tabulate(results, say)
}

// measure plays all scenes of a size on a cluster of its own.
func measure(ctx context.Context, dir string, nodes []corev1.Node, plan recovery.Plan) ([]recovery.Result, error) {
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Mode: probe.Full, Nodes: nodes, Report: plan.Say})
	if err != nil {
		return nil, err
	}
	defer c.Stop(context.WithoutCancel(ctx))
	ctx, cancel := c.Alive(ctx)
	defer cancel()
	return recovery.Measure(ctx, c, plan)
}

// tabulate prints a table. It is an error if a bound was exceeded.
func tabulate(results []recovery.Result, say func(string)) error {
	say(
		"| ranks | scene | control plane, median, s | p99, s | bound, s | evicted, s | made again, s | bound again, s |\n" +
			"|---:|---|---:|---:|---:|---:|---:|---:|",
	)
	var late error
	for _, r := range results {
		bound := ""
		if r.Within > 0 {
			bound = fmt.Sprintf("%.0f", r.Within.Seconds())
		}
		median := func(of func(recovery.Loss) time.Duration) string {
			return fmt.Sprintf("%.2f", r.Quantile(0.5, of).Seconds())
		}
		p99 := r.Quantile(0.99, recovery.Loss.Ours)
		say(
			fmt.Sprintf(
				"| %d | %s | %s | %.2f | %s | %s | %s | %s |",
				r.Ranks,
				r.Scene,
				median(recovery.Loss.Ours),
				p99.Seconds(),
				bound,
				median(func(l recovery.Loss) time.Duration { return l.Evicted }),
				median(func(l recovery.Loss) time.Duration { return l.Made }),
				median(func(l recovery.Loss) time.Duration { return l.Bound }),
			),
		)
		if r.Within > 0 && p99 > r.Within {
			late = fmt.Errorf("%d ranks, %s: %v, which is more than %v", r.Ranks, r.Scene, p99, r.Within)
		}
	}
	return late
}
