// Command bench-gangapi compares what gangs cost where PodGroups are Kubernetes' own and where they are custom resources: a gang of a
// thousand pods that is bound, and a hundred gangs that are told why they wait. Both modes take turns in one run, on an embedded cluster
// of their own each time, with the shipped profile and client limits.
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
	"slices"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/simulator/fleet"
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

// bench is one run of the command.
type bench struct {
	dir    string
	rounds int
	// scenes is how often a turn is measured. A cluster that has just started is busy with its schemas, and its processes with caches.
	scenes int
	// size is the number of pods of the large gang, waiting that of the gangs that do not fit beside it.
	size, waiting int
	// byUsers is set if PodGroups are made as users make them, and not as the controller makes them of TrainJobs.
	byUsers bool
	out     io.Writer
	clock   clock.Clock
}

// figures are seconds from the first request until all pods are bound, and until all gangs that wait are told why.
type figures struct{ bound, told float64 }

func run(ctx context.Context, args []string, out io.Writer) error {
	b := bench{out: out, clock: clock.RealClock{}}
	flags := flag.NewFlagSet("bench-gangapi", flag.ContinueOnError)
	flags.StringVar(&b.dir, "dir", "out/bench", "folder for the clusters' state")
	flags.IntVar(&b.rounds, "rounds", 3, "how often each mode takes its turn")
	flags.IntVar(&b.scenes, "scenes", 4, "how often the scene is played in a turn, after once that does not count")
	flags.IntVar(&b.size, "size", 1000, "pods of the gang that is bound")
	flags.IntVar(&b.waiting, "waiting", 100, "gangs that do not fit beside it")
	flags.BoolVar(&b.byUsers, "by-users", false, "make PodGroups as users do, not as the controller does for TrainJobs")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	if b.rounds < 1 || b.scenes < 1 || b.size < 1 || b.waiting < 1 {
		return errors.New("-rounds, -scenes, -size, -waiting: must be at least 1")
	}
	modes := []probe.Mode{probe.Full, probe.Resources}
	measured := map[probe.Mode][]figures{}
	for round := range b.rounds {
		for i := range modes {
			mode := modes[(round+i)%len(modes)] // neither always comes second
			found, err := b.play(ctx, mode)
			if err != nil {
				return fmt.Errorf("mode %s: %w", mode, err)
			}
			measured[mode] = append(measured[mode], found...)
			for _, one := range found {
				b.say("round %d, mode %s: bound in %.1f s, told in %.1f s", round+1, mode, one.bound, one.told)
			}
		}
	}
	native, resources := medians(measured[probe.Full]), medians(measured[probe.Resources])
	b.say("| | native | custom resources | ratio |\n|---|---:|---:|---:|")
	b.say(
		"| gang of %d bound, s | %.1f | %.1f | %.2f |",
		b.size,
		native.bound,
		resources.bound,
		resources.bound/native.bound,
	)
	b.say(
		"| %d gangs told why they wait, s | %.1f | %.1f | %.2f |",
		b.waiting,
		native.told,
		resources.told,
		resources.told/native.told,
	)
	return nil
}

func (b *bench) say(format string, values ...any) { _, _ = fmt.Fprintf(b.out, format+"\n", values...) }

// play measures one mode on a cluster of its own: the scenes in turn.
func (b *bench) play(ctx context.Context, mode probe.Mode) ([]figures, error) {
	machines, err := fleet.Open("h100-128")
	if err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: filepath.Join(
			b.dir,
			"gangapi",
		),
		Mode:    mode,
		Nodes:   machines.Nodes,
		Slices:  machines.Slices,
		Classes: machines.Classes,
		Report:  func(string) {},
	})
	if err != nil {
		return nil, err
	}
	defer c.Stop(context.WithoutCancel(ctx))
	ctx, cancel := c.Alive(ctx)
	defer cancel()
	var finalizers []string
	if mode == probe.Resources && !b.byUsers {
		finalizers = []string{gangapi.Finalizer}
	}
	s := newScene(c, b.clock, finalizers)
	var all []figures
	for range 1 + b.scenes {
		found, err := s.play(ctx, b.size, b.waiting)
		if err != nil {
			return nil, err
		}
		if err := s.clear(ctx); err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all[1:], nil
}

// medians are those of each figure: the mean of the two in the middle if their number is even.
func medians(all []figures) figures {
	of := func(get func(figures) float64) float64 {
		var values []float64
		for _, one := range all {
			values = append(values, get(one))
		}
		slices.Sort(values)
		return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	}
	return figures{of(func(f figures) float64 { return f.bound }), of(func(f figures) float64 { return f.told })}
}

// patience bounds each of the two figures.
const patience = 5 * time.Minute
