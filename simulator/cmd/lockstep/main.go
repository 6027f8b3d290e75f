// Command lockstep brings up an embedded cluster with Lockstep on it and shows the placement of gangs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Environment{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Clock: clock.RealClock{},
	})
	stop()
	os.Exit(code)
}
