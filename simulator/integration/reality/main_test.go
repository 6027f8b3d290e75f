// Package reality_test compares the simulator with real components, on a cluster of its own: other load there would be
// unrecorded input.
package reality_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/reality/uncontrolled"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

var (
	long     = flag.Bool("long", false, "play five seeds of each scenario instead of one")
	write    = flag.String("write", "", "the file to write the tables of docs/simulator-validation.md to")
	replay   = flag.Bool("uncontrolled", false, "run the uncontrolled replay, on its own fleet, and nothing else")
	seedList = flag.String("seeds", "1", "the seeds of the uncontrolled replay, separated by commas")
	queueing = flag.String(
		"queueing",
		"",
		"the discipline of the queue in the uncontrolled replay, such as promise; empty for the shipped one",
	)
	recorded = flag.String(
		"recorded",
		"",
		"hold the records in this folder (-keep) against the simulator, without a cluster",
	)
	keep = flag.String("keep", "", "the folder to keep what was recorded in, one file for each run")

	shared testcluster.Cluster
)

// fleetFile is the fleet of all runs but the uncontrolled.
var fleetFile = filepath.Join("testdata", "racks.yaml")

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("reality: skipped with -short")
		return
	}
	if *recorded != "" {
		os.Exit(m.Run())
	}
	setting := testcluster.Setting{
		Name:     "reality",
		Machines: fleetFile,
		Options:  cluster.Options{Mode: probe.Full},
		Out:      os.Stdout,
	}
	if *replay {
		setting.Machines = uncontrolled.Fleet
	}
	if *queueing != "" {
		setting.Options.Values = map[string]any{"scheduler": map[string]any{"pluginArgs": map[string]any{
			"GangPlacement": map[string]any{"queueing": map[string]any{"discipline": *queueing}},
		}}}
	}
	os.Exit(testcluster.Run(context.Background(), m, setting, func(s testcluster.Cluster) { shared = s }))
}
