// Package automatic_test runs jobs with automatic resources on real components, on a cluster of its own whose GPUs say
// their memory.
package automatic_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

var shared testcluster.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(testcluster.Main(context.Background(), m, testcluster.Setting{
		Name: "automatic", Machines: filepath.Join("testdata", "fleet.yaml"), Out: os.Stdout,
		Options: cluster.Options{Mode: cluster.DefaultMode(cluster.NewestKubernetes)},
	}, func(s testcluster.Cluster) { shared = s }))
}
