// Package devices_test runs gangs that claim devices on real components: on a cluster of its own, because a class that
// serves nvidia.com/gpu changes how every pod that asks for a GPU is scheduled.
package devices_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

var shared testcluster.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(testcluster.Main(context.Background(), m, testcluster.Setting{
		Name: "devices", Machines: filepath.Join("testdata", "fleet.yaml"), Out: os.Stdout,
		Options: cluster.Options{
			Mode: probe.Full, NVLink: nvlink.Settings{Quickest: 500 * time.Millisecond, Slowest: time.Second},
		},
	}, func(s testcluster.Cluster) { shared = s }))
}
