// Package upgrade_test replaces the controller of an earlier commit by this one, on an embedded cluster with jobs. The earlier
// one is built from the repository's history, so it runs only when it is asked for:
// go test -v ./simulator/integration/upgrade -args -previous 85ea028.
package upgrade_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/simulator/integration/stage"
)

var (
	previous = flag.String("previous", "", "the commit whose controller is replaced")

	shared stage.Stage
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() || *previous == "" {
		fmt.Println("upgrade: skipped without -args -previous COMMIT")
		return
	}
	setting := stage.Setting{
		Name: "upgrade", Machines: "gb200-72", Options: cluster.Options{Mode: probe.Full}, Out: os.Stdout,
	}
	os.Exit(stage.Run(context.Background(), m, setting, func(s stage.Stage) { shared = s }))
}
