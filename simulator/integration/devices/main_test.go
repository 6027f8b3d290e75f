// Package devices_test runs gangs that claim devices on real components: on a cluster of its own, because a class that
// serves nvidia.com/gpu changes how every pod that asks for a GPU is scheduled.
package devices_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/simulator/cluster/nvlink"
	"github.com/lockstep-project/lockstep/simulator/integration/stage"
)

var shared stage.Stage

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("devices: skipped with -short")
		return
	}
	options := cluster.Options{
		Mode: probe.Full, NVLink: nvlink.Settings{Quickest: 500 * time.Millisecond, Slowest: time.Second},
	}
	machines := filepath.Join("testdata", "fleet.yaml")
	setting := stage.Setting{Name: "devices", Machines: machines, Options: options, Out: os.Stdout}
	os.Exit(stage.Run(context.Background(), m, setting, func(s stage.Stage) { shared = s }))
}
