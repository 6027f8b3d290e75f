// Package real_test installs the packed chart by the real helm on real nodes, which run the images of make images, of this release (out/images) and of the
// one before (out/previous). It needs root, and what
// make e2e-install builds: go test -v ./simulator/integration/real -args -real.
package real_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/simulator/realnode"
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
	ctx := context.Background()
	if !realnode.Again() {
		// Outside, where there is a network: what is missing is downloaded and built.
		if _, err := cluster.Build(ctx, say); err != nil {
			say(err.Error())
			os.Exit(1)
		}
	}
	os.Exit(realnode.Main(ctx, nil, func(ctx context.Context, in realnode.Inside) int {
		if err := start(ctx, in.Dir); err != nil {
			say(err.Error())
			return 1
		}
		code := m.Run()
		shared.Stop(ctx)
		return code
	}))
}

func say(line string) { fmt.Println("real: " + line) }

// start brings up a control plane and the nodes, and loads the images that the chart names.
func start(ctx context.Context, dir string) error {
	root, err := cluster.SourceTree()
	if err != nil {
		return err
	}
	shared, err = cluster.Start(ctx, cluster.Options{
		Dir: filepath.Join(dir, "state"), Mode: probe.Resources, Report: say,
		Bare: true, Real: &cluster.RealNodes{Address: realnode.Address},
	})
	if err != nil {
		return err
	}
	joined := realnode.Cluster{
		Kubeconfig: shared.Kubeconfig(), Client: shared.Client, Programs: filepath.Join(root, "bin", "node"),
	}
	images, err := filepath.Glob(filepath.Join(root, "out", "*", "layout", "*"))
	if err != nil {
		return fmt.Errorf("finding the images: %w", err)
	}
	for n := 1; n <= nodeCount; n++ {
		say(fmt.Sprintf("starting node %d", n))
		node, err := realnode.Start(ctx, joined, n, filepath.Join(dir, "nodes"))
		if err != nil {
			return err
		}
		nodes = append(nodes, node)
		if n == 1 {
			if err := realnode.StartServices(ctx, joined, dir); err != nil {
				return err
			}
		}
		if err := node.Offer(ctx, shared.Client, gpu, gpusPerNode); err != nil {
			return err
		}
		say("loading images")
		for _, image := range images {
			if err := node.Load(ctx, image); err != nil {
				return err
			}
		}
	}
	return nil
}
