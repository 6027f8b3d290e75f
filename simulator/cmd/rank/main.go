// Command rank stands for a training program in images of a few megabytes: it prints its rank, runs for the time of its
// argument and exits successfully. Without an argument it runs until SIGTERM, like the container that holds a pod's
// namespaces.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// told is the exit code of a program that SIGTERM ended, as shells report it.
const told = 143

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "rank:", err)
	}
	os.Exit(code)
}

// run runs for the time of the first argument, or until ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, out io.Writer) (int, error) {
	if len(args) == 0 {
		<-ctx.Done()
		return 0, nil
	}
	runs, err := time.ParseDuration(args[0])
	if err != nil {
		return 2, fmt.Errorf("reading for how long: %w", err)
	}
	_, err = fmt.Fprintf(out, "rank %s of %s runs for %s\n", os.Getenv("PET_NODE_RANK"), os.Getenv("PET_NNODES"), runs)
	if err != nil {
		return 1, fmt.Errorf("printing: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, runs)
	defer cancel()
	<-ctx.Done()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return told, nil
	}
	_, err = fmt.Fprintln(out, "done")
	return 0, err //nolint:wrapcheck // the log of a pod has gone
}
