// Package install_test installs, upgrades and removes the chart with Helm's library on an embedded cluster that has
// nothing of Lockstep's. There is no kubelet: processes stand for the pods of the Deployments, as Helm has left these,
// and KWOK completes the hooks' Jobs.
package install_test

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
	mode  = flag.String("mode", string(probe.Resources), "what the control plane offers: full, groups or resources")
	minor = flag.String("kubernetes", cluster.NewestKubernetes, "the minor release of the control plane")
	write = flag.Bool("write", false, "write what the doctor says to docs/doctor.md")

	shared testcluster.Cluster
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("install: skipped with -short")
		return
	}
	setting := testcluster.Setting{
		Name:     "install",
		Machines: "gb200-72",
		Options:  cluster.Options{Mode: probe.Mode(*mode), Kubernetes: *minor, Bare: true},
		Out:      os.Stdout,
	}
	os.Exit(testcluster.Run(context.Background(), m, setting, func(s testcluster.Cluster) { shared = s }))
}
