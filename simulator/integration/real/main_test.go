// Package real_test installs the packed chart by the real helm on real nodes, which run the images of make images, of
// this release (out/images) and of the one before (out/previous). It needs root, and the programs of make e2e-install:
// go test -v ./simulator/integration/real -args -real.
package real_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/realnode"
)

var (
	wanted = flag.Bool("real", false, "run the tests, on real nodes")

	shared *cluster.Cluster
	nodes  []*realnode.Node
)

// There are so many nodes, which say that they have GPUs.
const (
	nodeCount   = 2
	gpu         = "nvidia.com/gpu"
	gpusPerNode = 8
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !*wanted && !realnode.Again() {
		fmt.Println("real: skipped without -args -real; make e2e-install has it")
		return
	}
	os.Exit(testcluster.RunReal(context.Background(), m, setting()))
}

func setting() testcluster.RealSetting {
	return testcluster.RealSetting{Name: "real", Start: start, Out: os.Stdout}
}

// start brings up a control plane and the nodes, and loads the images that the chart names.
func start(ctx context.Context, dir string) (*cluster.Cluster, error) {
	root, err := sourcetree.Root()
	if err != nil {
		return nil, err
	}
	shared, err = cluster.Start(ctx, cluster.Options{
		Dir: filepath.Join(dir, "state"), Mode: probe.Resources, Report: setting().Say,
		Bare: true, Real: &cluster.RealNodes{Address: realnode.Address},
	})
	if err != nil {
		return nil, err
	}
	nodes, err = realnode.StartAll(ctx, realnode.Cluster{
		Kubeconfig: shared.Kubeconfig(), Client: shared.Client, Programs: filepath.Join(root, "bin", "node"),
	}, nodeCount, filepath.Join(dir, "nodes"))
	if err != nil {
		return shared, err
	}
	images, err := filepath.Glob(filepath.Join(root, "out", "*", "layout", "*"))
	if err != nil {
		return shared, fmt.Errorf("finding the images: %w", err)
	}
	for _, node := range nodes {
		if err := node.Offer(ctx, shared.Client, gpu, gpusPerNode); err != nil {
			return shared, err
		}
		for _, image := range images {
			if err := node.Load(ctx, image); err != nil {
				return shared, err
			}
		}
	}
	return shared, nil
}
