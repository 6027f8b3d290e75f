// Package moving_test moves a cluster's gangs from custom resources to Kubernetes' own PodGroups and back, while gangs
// run and wait.
package moving_test

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

var shared testcluster.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("moving: skipped with -short")
		return
	}
	setting := testcluster.Setting{
		Name: "moving", Machines: "gb200-72", Options: cluster.Options{Mode: probe.Resources}, Out: os.Stdout,
		Regates: true,
	}
	os.Exit(testcluster.Run(context.Background(), m, setting, func(s testcluster.Cluster) { shared = s }))
}
