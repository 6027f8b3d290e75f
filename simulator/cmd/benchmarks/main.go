// Command benchmarks plays the benchmark and writes its document. It resumes an interrupted benchmark.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/run/benchmark"
	"github.com/lockstep-project/lockstep/simulator/score/progress"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o benchmark.Options
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.StringVar(&o.Dir, "dir", "out/benchmarks", "where results are kept, and found again")
	flags.StringVar(&o.Cards, "cards", "docs/benchmarks", "the folder with the scorecards of all runs; empty for none")
	flags.IntVar(&o.Seeds, "seeds", 0, "play at most so many seeds of each comparison; 0 for all of the plan")
	flags.StringVar(&o.Shared, "openb", "../shared/data/openb", "the folder with openb's lists")
	flags.StringVar(&o.Committed, "committed", "simulator/inputs/trace/testdata/openb",
		"the folder with those of them that are committed")
	flags.StringVar(&o.Only, "only", "", "play this comparison alone")
	flags.IntVar(
		&o.Part,
		"part",
		0,
		"with -parts: play only this part of the comparisons, from 1; then -found writes the document",
	)
	flags.IntVar(
		&o.Parts,
		"parts",
		0,
		"into how many parts the comparisons are divided, one for each process; 0 for one",
	)
	flags.BoolVar(&o.Quick, "quick", false, "play the first jobs only, with one seed")
	flags.BoolVar(
		&o.Found,
		"found",
		false,
		"play nothing, and write of the scorecards that are there, whatever commit they are of",
	)
	out := flags.String("out", "docs/benchmarks.md", "the document")
	shown := flags.String("progress", "auto", "how progress is shown: auto, screen, plain, json or none")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp): // it was shown
		return nil
	case err != nil:
		return fmt.Errorf("reading the flags: %w", err)
	}
	form, err := progress.ParseForm(*shown, os.Stderr, os.Getenv("TERM"))
	if err != nil {
		return err
	}
	o.Wall = clock.RealClock{}
	o.Say = func(line string) { _, _ = fmt.Fprintln(os.Stderr, line) }
	ctx, o.Progress = progress.Start(ctx, progress.Options{
		Out: os.Stderr, In: os.Stdin, Form: form, Clock: clock.RealClock{}, Environment: os.Environ(),
	})
	document, err := benchmark.Play(ctx, o)
	if closing := o.Progress.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return capture.Publish(*out, document.Write)
}
