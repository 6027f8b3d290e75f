// Package automatic_test runs jobs with automatic resources on real components, on a cluster of its own whose GPUs say their memory.
package automatic_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/simulator/integration/stage"
)

var shared stage.Stage

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("automatic: skipped with -short")
		return
	}
	options := cluster.Options{Mode: cluster.DefaultMode(cluster.NewestKubernetes)}
	machines := filepath.Join("testdata", "fleet.yaml")
	setting := stage.Setting{Name: "automatic", Machines: machines, Options: options, Out: os.Stdout}
	os.Exit(stage.Run(context.Background(), m, setting, func(s stage.Stage) { shared = s }))
}
