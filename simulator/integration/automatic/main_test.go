// Package automatic_test runs jobs with automatic resources on real components, on a cluster of its own whose GPUs say
// their memory.
package automatic_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/integration/stage"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

var shared stage.Stage

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(stage.Main(context.Background(), m, stage.Setting{
		Name: "automatic", Machines: filepath.Join("testdata", "fleet.yaml"), Out: os.Stdout,
		Options: cluster.Options{Mode: cluster.DefaultMode(cluster.NewestKubernetes)},
	}, func(s stage.Stage) { shared = s }))
}
