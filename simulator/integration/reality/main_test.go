// Package reality_test holds the simulator to what real components do, on a cluster of its own: what else ran there would be
// input that nobody recorded.
package reality_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/simulator/integration/stage"
)

var (
	long  = flag.Bool("long", false, "play five seeds of each scenario instead of one")
	write = flag.String("write", "", "the file to write the tables of docs/simulator-validation.md to")
	keep  = flag.String("keep", "", "the folder to keep what was recorded in, one file for each run")

	shared stage.Stage
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("reality: skipped with -short")
		return
	}
	setting := stage.Setting{
		Name:     "reality",
		Machines: filepath.Join("testdata", "racks.yaml"),
		Options:  cluster.Options{Mode: probe.Full},
		Out:      os.Stdout,
	}
	os.Exit(stage.Run(context.Background(), m, setting, func(s stage.Stage) { shared = s }))
}
