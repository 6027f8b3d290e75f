// Package frameworks_test runs the frameworks that users run, through Kubeflow's SDK, on real nodes: two kubelets with
// their containerd, in whose containers are Debian's and PyPI's programs. It needs root, and the programs of make
// e2e-real: go test -v ./simulator/integration/frameworks -args -real.
package frameworks_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/realnode"
)

var (
	wanted = flag.Bool("real", false, "run the tests, on real nodes")
	write  = flag.Bool("write", false, "write what passes into the table of docs/real-nodes.md")

	shared   *cluster.Cluster
	nodes    []*realnode.Node
	userland realnode.Userland
	// checkpoints is a folder that pods of all nodes can have.
	checkpoints string
)

// There are so many nodes, which say that they have GPUs.
const (
	nodeCount   = 2
	gpu         = "nvidia.com/gpu"
	gpusPerNode = 2
)

// ownImage is the image of a user who does not use the runtime's.
const ownImage = realnode.Registry + "/own-xgboost:1"

func TestMain(m *testing.M) {
	flag.Parse()
	if !*wanted && !realnode.Again() {
		fmt.Println("frameworks: skipped without -args -real; make e2e-real has it")
		return
	}
	os.Exit(testcluster.RunReal(context.Background(), m, setting()))
}

func setting() testcluster.RealSetting {
	chosen := testcluster.RealSetting{Name: "frameworks", Start: start, Out: os.Stdout}
	if *write {
		chosen.Done = writePage
	}
	return chosen
}

// start brings up Lockstep without fake nodes, and the nodes, with the userland under the names of all images of the
// shipped runtimes.
func start(ctx context.Context, dir string) (*cluster.Cluster, error) {
	root, err := sourcetree.Root()
	if err != nil {
		return nil, err
	}
	userland, err = realnode.OpenUserland(filepath.Join(root, "out", "userland"))
	if err != nil {
		return nil, err
	}
	checkpoints = filepath.Join(dir, "checkpoints")
	if err := os.Mkdir(checkpoints, 0o777); err != nil {
		return nil, fmt.Errorf("making a folder for checkpoints: %w", err)
	}
	shared, err = cluster.Start(ctx, cluster.Options{
		Dir: filepath.Join(dir, "state"), Mode: probe.Resources, Report: setting().Say,
		Real: &cluster.RealNodes{Address: realnode.Address},
	})
	if err != nil {
		return nil, err
	}
	programs := filepath.Join(root, "simulator", "integration", "frameworks", "programs")
	for folder, name := range map[string]string{programs: "programs", filepath.Dir(shared.Kubeconfig()): "kubeconfig"} {
		if err := userland.Share(folder, name); err != nil {
			return shared, err
		}
	}
	runtimes, err := chart.Runtimes()
	if err != nil {
		return shared, err
	}
	nodes, err = realnode.StartAll(ctx, realnode.Cluster{
		Kubeconfig: shared.Kubeconfig(),
		Client:     shared.Client,
		Programs:   filepath.Join(root, "bin", "node"),
		Userland:   userland.Dir,
	}, nodeCount, filepath.Join(dir, "nodes"))
	if err != nil {
		return shared, err
	}
	for _, node := range nodes {
		if err := node.TagUserland(ctx, append(realnode.Images(runtimes), ownImage)...); err != nil {
			return shared, err
		}
		if err := node.Offer(ctx, shared.Client, gpu, gpusPerNode); err != nil {
			return shared, err
		}
	}
	return shared, nil
}
