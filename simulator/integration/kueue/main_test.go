// Package kueue_test is the smoke of lockstep up --kueue: real Kueue, from its own module, on an embedded cluster.
// Building Kueue takes minutes, so it runs only when it is asked for: go test -v ./simulator/integration/kueue -args
// -kueue.
package kueue_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

var (
	wanted = flag.Bool("kueue", false, "build and run real Kueue")
	mode   = flag.String("mode", string(probe.Full), "what the control plane offers: full, groups or resources")

	shared testcluster.Cluster
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() || !*wanted {
		fmt.Println("kueue: skipped without -args -kueue")
		return
	}
	options := cluster.Options{
		Mode: probe.Mode(*mode), Kueue: true,
		Values: map[string]any{"manager": map[string]any{"args": []any{"--kueue-check-after=" + checkAfter.String()}}},
	}
	setting := testcluster.Setting{Name: "kueue", Machines: "gb200-72", Options: options, Out: os.Stdout}
	os.Exit(testcluster.Run(context.Background(), m, setting, func(s testcluster.Cluster) { shared = s }))
}
