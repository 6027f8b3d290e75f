// Package kueue_test is the smoke of lockstep up --kueue: real Kueue, from its own module, on an embedded cluster. Building
// Kueue takes minutes, so it runs only when it is asked for: go test -v ./simulator/integration/kueue -args -kueue.
package kueue_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/simulator/fleet"
)

var (
	wanted = flag.Bool("kueue", false, "build and run real Kueue")

	shared   *cluster.Cluster
	machines fleet.Fleet
)

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(klog.NewKlogr()) // or controller-runtime prints a stack to say that nobody did
	os.Exit(run(m))
}

// run brings a cluster with Kueue up once for all tests of the package.
func run(m *testing.M) int {
	if testing.Short() || !*wanted {
		fmt.Println("kueue: skipped without -args -kueue")
		return 0
	}
	var err error
	if machines, err = fleet.Open("gb200-72"); err != nil {
		fmt.Println(err)
		return 1
	}
	dir, err := os.MkdirTemp("", "lockstep-kueue-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	shared, err = cluster.Start(context.Background(), cluster.Options{
		Dir: filepath.Join(dir, "state"), Mode: probe.Full, Nodes: machines.Nodes, Kueue: true,
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
		fmt.Println("kueue: the logs are in", filepath.Join(dir, "state", "logs"))
	}
	return code
}

// complaints fails the run if Kueue or one of our binaries was refused something by its roles, or panicked.
func complaints() int {
	code := 0
	for _, component := range []string{"kueue", "lockstep-controller", "lockstep-scheduler"} {
		log, err := os.ReadFile(filepath.Join(shared.Dir(), "logs", component+".log"))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "forbidden") || strings.Contains(line, "panic") {
				fmt.Printf("kueue: %s complains: %s", component, line)
				code = 1
			}
		}
	}
	return code
}
