// Command bench-status measures the controller's status server with thousands of TrainJobs that report, on an embedded
// cluster.
package main

import (
	"context"
	"encoding/json"
	"errors"
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

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-project/lockstep/simulator/bench/reportload"
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
	dir     string
	rounds  []int
	lasting time.Duration
	every   time.Duration
	fresh   bool
	out     io.Writer
	clock   clock.Clock
	results []reportload.Result
}

func run(ctx context.Context, args []string, out io.Writer) error {
	b := bench{out: out, clock: clock.RealClock{}}
	flags := flag.NewFlagSet("bench-status", flag.ContinueOnError)
	flags.StringVar(&b.dir, "dir", "out/bench", "folder that gets the results, and the cluster's state")
	jobs := flags.String("jobs", "1000,4000,10000", "how many jobs report in each round")
	flags.DurationVar(&b.lasting, "for", 90*time.Second, "how long is measured in each round, once all are believed")
	flags.DurationVar(&b.every, "every", 5*time.Second, "time between two reports of a job")
	flags.BoolVar(&b.fresh, "fresh", false, "make a connection for each report, as Python's urllib does")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	last := 0
	for text := range strings.SplitSeq(*jobs, ",") {
		count, err := strconv.Atoi(text)
		if err != nil || count <= last {
			return fmt.Errorf("-jobs=%s: must be numbers that grow, with commas between them", *jobs)
		}
		b.rounds, last = append(b.rounds, count), count
	}
	if b.lasting < time.Second || b.every <= 0 {
		return errors.New("-for must be at least 1s, and -every above 0")
	}
	err := b.measure(ctx)
	if len(b.results) == 0 {
		return err
	}
	return errors.Join(err, reportload.Write(out, b.results), b.save())
}

// measure plays the rounds on one cluster, to which each adds jobs.
func (b *bench) measure(ctx context.Context) error {
	s, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	ctx, cancel := s.cluster.Alive(ctx)
	defer cancel()
	for _, jobs := range b.rounds {
		if err := s.grow(ctx, jobs); err != nil {
			return err
		}
		result, err := s.round(ctx)
		if err != nil {
			return err
		}
		b.results = append(b.results, result)
		if err := reportload.Write(b.out, b.results[len(b.results)-1:]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) say(format string, values ...any) {
	_, _ = fmt.Fprintf(b.out, b.clock.Now().Format("15:04:05 ")+format+"\n", values...)
}

func (b *bench) save() error {
	content, err := json.MarshalIndent(b.results, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	name := "status.json"
	if b.fresh {
		name = "status-fresh.json"
	}
	if err := os.WriteFile(filepath.Join(b.dir, name), append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}
