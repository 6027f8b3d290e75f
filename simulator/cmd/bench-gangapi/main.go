// Command bench-gangapi compares the cost of gangs where PodGroups are built into Kubernetes and where they are custom
// resources: a gang of a thousand pods that is bound, and a hundred gangs whose reason for waiting is reported. Both
// modes take turns, scene by scene, on embedded clusters that run side by side, with the shipped profile and client
// limits.
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

// bench is one run of the command.
type bench struct {
	dir string
	// pairs is the number of measurements of the scene in each mode, after one that does not count: a cluster that has
	// just started is busy with its schemas, and its processes with caches.
	pairs int
	// size is the number of pods of the large gang, waiting that of the gangs that do not fit beside it.
	size, waiting int
	// byUsers is set if PodGroups are made as users make them, and not as the controller makes them of TrainJobs.
	byUsers bool
	out     io.Writer
	clock   clock.Clock
}

// figures are seconds from the first request until all pods are bound, and until all waiting gangs have a reason.
type figures struct{ bound, told float64 }

func bound(f figures) float64 { return f.bound }
func told(f figures) float64  { return f.told }

func run(ctx context.Context, args []string, out io.Writer) error {
	b := bench{out: out, clock: clock.RealClock{}}
	flags := flag.NewFlagSet("bench-gangapi", flag.ContinueOnError)
	flags.StringVar(&b.dir, "dir", "out/bench", "folder for the clusters' state")
	flags.IntVar(&b.pairs, "pairs", 12, "how often the scene is measured in each mode, after once that does not count")
	flags.IntVar(&b.size, "size", 1000, "pods of the gang that is bound")
	flags.IntVar(&b.waiting, "waiting", 100, "gangs that do not fit beside it")
	flags.BoolVar(&b.byUsers, "by-users", false, "make PodGroups as users do, not as the controller does for TrainJobs")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	if b.pairs < 1 || b.size < 1 || b.waiting < 1 {
		return errors.New("-pairs, -size, -waiting: must be at least 1")
	}
	native, stop, err := b.start(ctx, probe.Full)
	if err != nil {
		return err
	}
	defer stop()
	custom, stop, err := b.start(ctx, probe.Resources)
	if err != nil {
		return err
	}
	defer stop()
	pairs, err := b.measure(ctx, native, custom)
	if err != nil {
		return err
	}
	b.say("| | native | custom resources | ratio |\n|---|---:|---:|---:|")
	b.row(fmt.Sprintf("%d gangs told why they wait", b.waiting), pairs, told)
	b.row(fmt.Sprintf("gang of %d bound", b.size), pairs, bound)
	return nil
}

// pair is the scene in both modes, one right after the other: other load on the machine changes more slowly.
type pair struct{ native, custom figures }

// measure plays the scene in both modes in turns. The order alternates, so that neither mode is always second.
func (b *bench) measure(ctx context.Context, native, custom scene) ([]pair, error) {
	var pairs []pair
	for i := range 1 + b.pairs {
		var found pair
		turns := []func() error{
			func() (err error) { found.native, err = b.play(ctx, native); return err },
			func() (err error) { found.custom, err = b.play(ctx, custom); return err },
		}
		for k := range turns {
			if err := turns[(i+k)%2](); err != nil {
				return nil, err
			}
		}
		if i == 0 {
			continue
		}
		pairs = append(pairs, found)
		b.say("pair %d: bound in %.1f and %.1f s, told in %.1f and %.1f s",
			i, found.native.bound, found.custom.bound, found.native.told, found.custom.told)
	}
	return pairs, nil
}

// row is a row of the table: medians, and the median of the ratios within the pairs.
func (b *bench) row(what string, pairs []pair, figure func(figures) float64) {
	var native, custom, ratios []float64
	for _, p := range pairs {
		native, custom = append(native, figure(p.native)), append(custom, figure(p.custom))
		ratios = append(ratios, figure(p.custom)/figure(p.native))
	}
	b.say("| %s, s | %.1f | %.1f | %.2f |", what, median(native), median(custom), median(ratios))
}

func (b *bench) say(format string, values ...any) { _, _ = fmt.Fprintf(b.out, format+"\n", values...) }

// start starts a cluster of a mode, and returns the scene on it.
func (b *bench) start(ctx context.Context, mode probe.Mode) (scene, func(), error) {
	machines, err := fleet.Open("h100-128")
	if err != nil {
		return scene{}, nil, err
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: filepath.Join(b.dir, "gangapi", string(mode)), Mode: mode,
		Nodes: machines.Nodes, Slices: machines.Slices, Classes: machines.Classes,
		Report: func(string) {},
	})
	if err != nil {
		return scene{}, nil, fmt.Errorf("mode %s: %w", mode, err)
	}
	var finalizers []string
	if mode == probe.Resources && !b.byUsers {
		finalizers = []string{gangapi.Finalizer}
	}
	return newScene(c, b.clock, finalizers), func() { c.Stop(context.WithoutCancel(ctx)) }, nil
}

// play plays the scene once, and tidies up.
func (b *bench) play(ctx context.Context, s scene) (figures, error) {
	ctx, cancel := s.cluster.Alive(ctx)
	defer cancel()
	found, err := s.play(ctx, b.size, b.waiting)
	if err != nil {
		return figures{}, err
	}
	return found, s.clear(ctx)
}

// median is the mean of the two in the middle if their number is even.
func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// patience bounds each of the two figures.
const patience = 5 * time.Minute
