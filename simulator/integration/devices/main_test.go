// Package devices_test runs gangs that claim devices on real components: on a cluster of its own, because a class that
// serves nvidia.com/gpu changes how every pod that asks for a GPU is scheduled.
package devices_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/simulator/cluster/nvlink"
	"github.com/lockstep-project/lockstep/simulator/fleet"
)

var (
	shared   *cluster.Cluster
	machines fleet.Fleet
)

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(klog.NewKlogr()) // or controller-runtime prints a stack to say that nobody did
	os.Exit(run(m))
}

// run brings a cluster with devices up once for all tests of the package.
func run(m *testing.M) int {
	if testing.Short() {
		fmt.Println("devices: skipped with -short")
		return 0
	}
	var err error
	if machines, err = fleet.Open(filepath.Join("testdata", "fleet.yaml")); err != nil {
		fmt.Println(err)
		return 1
	}
	dir, err := os.MkdirTemp("", "lockstep-devices-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	shared, err = cluster.Start(context.Background(), cluster.Options{
		Dir: filepath.Join(dir, "state"), Mode: probe.Full,
		Nodes: machines.Nodes, Slices: machines.Slices, Classes: machines.Classes,
		NVLink: nvlink.Settings{Quickest: 500 * time.Millisecond, Slowest: time.Second},
		Report: func(line string) { fmt.Println("cluster:", line) },
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	code := m.Run()
	if code == 0 {
		code = complaints()
	}
	shared.Stop(context.Background())
	if code == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Println("devices: the logs are in", filepath.Join(dir, "state", "logs"))
	}
	return code
}

// complaints fails the run if one of our binaries was refused something by the roles that we ship, or panicked.
func complaints() int {
	code := 0
	for _, component := range []string{"lockstep-controller", "lockstep-scheduler"} {
		log, err := os.ReadFile(filepath.Join(shared.Dir(), "logs", component+".log"))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "forbidden") || strings.Contains(line, "panic") {
				fmt.Printf("devices: %s complains: %s", component, line)
				code = 1
			}
		}
	}
	return code
}
