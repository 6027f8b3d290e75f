// Package datacache_test runs Kubeflow's data cache on real nodes: its own initializer, head and worker of the release
// that conformance is checked against, LeaderWorkerSet's own controller, and torch ranks that read their shares from
// the cache. In place of an object store, images have the table. It needs root, and the programs of make
// e2e-data-cache: go test -v ./simulator/integration/datacache -args -real.
package datacache_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/operators"
	"github.com/lockstep-project/lockstep/simulator/live/realnode"
)

var (
	wanted       = flag.Bool("real", false, "run the tests, on real nodes")
	write        = flag.Bool("write", false, "write what is seen of a job into docs/data-cache.md")
	cacheDir     = flag.String("cache", "bin/data-cache", "the folder of make data-cache, below the source tree")
	operatorsDir = flag.String(
		"operators",
		"bin/operators",
		"the folder of LeaderWorkerSet's controller, which is built if it is not there",
	)

	shared   *cluster.Cluster
	userland realnode.Userland
	// sets is LeaderWorkerSet's controller.
	sets setController
	// images are those of the runtime (see imageNames).
	images map[string]string
	// table is the URL of the table's metadata, a file in the cache's image.
	table string
)

const (
	namespace   = "default"
	runtimeName = "torch-distributed-with-cache"
	nodeCount   = 2
	gpu         = "nvidia.com/gpu"
	gpusPerNode = 2
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !*wanted && !realnode.Again() {
		fmt.Println("datacache: skipped without -args -real; make e2e-data-cache has it")
		return
	}
	if err := findSets(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "datacache:", err)
		os.Exit(1)
	}
	os.Exit(testcluster.RunReal(context.Background(), m, setting()))
}

func setting() testcluster.RealSetting {
	return testcluster.RealSetting{Name: "datacache", Start: start, Out: os.Stdout}
}

var (
	// errNoController indicates that package operators no longer has LeaderWorkerSet's controller.
	errNoController = errors.New("package operators has no LeaderWorkerSet")
	// errNoRuntime indicates that the runtime of the cache is not shipped any more.
	errNoRuntime = errors.New("the chart has no such runtime")
)

// findSets builds LeaderWorkerSet's controller if it is not there.
func findSets(ctx context.Context) error {
	root, err := sourcetree.Root()
	if err != nil {
		return err
	}
	all := operators.All()
	at := slices.IndexFunc(all, func(o operators.Operator) bool { return o.Name == "leaderworkerset" })
	if at < 0 {
		return errNoController
	}
	sets.operator = all[at]
	sets.binary, err = sets.operator.Build(ctx, filepath.Join(root, *operatorsDir))
	return err
}

// start brings up Lockstep with the account of the cache's initializer, without fake nodes, and the nodes with their
// images.
func start(ctx context.Context, dir string) (*cluster.Cluster, error) {
	root, err := sourcetree.Root()
	if err != nil {
		return nil, err
	}
	userland, err = realnode.OpenUserland(filepath.Join(root, "out", "userland"))
	if err != nil {
		return nil, err
	}
	files, err := overlays(ctx, filepath.Join(root, *cacheDir), dir)
	if err != nil {
		return nil, err
	}
	shared, err = cluster.Start(ctx, cluster.Options{
		Dir: filepath.Join(dir, "state"), Mode: probe.Resources, Report: setting().Say,
		Real:   &cluster.RealNodes{Address: realnode.Address},
		Values: map[string]any{"dataCache": map[string]any{"namespaces": []any{namespace}}},
	})
	if err != nil {
		return nil, err
	}
	if err := userland.Share(filepath.Dir(shared.Kubeconfig()), "kubeconfig"); err != nil {
		return shared, err
	}
	nodes, err := realnode.StartAll(ctx, realnode.Cluster{
		Kubeconfig: shared.Kubeconfig(),
		Client:     shared.Client,
		Programs:   filepath.Join(root, "bin", "node"),
		Userland:   userland.Dir,
	}, nodeCount, filepath.Join(dir, "nodes"))
	if err != nil {
		return shared, err
	}
	for _, node := range nodes {
		for _, image := range files {
			if err := node.LoadOverlay(ctx, image); err != nil {
				return shared, err
			}
		}
		if err := node.Offer(ctx, shared.Client, gpu, gpusPerNode); err != nil {
			return shared, err
		}
	}
	return shared, nil
}

// overlays puts the files of the images together, under the names that runtime torch-distributed-with-cache has.
func overlays(ctx context.Context, cache, dir string) ([]realnode.Overlay, error) {
	var err error
	if images, err = imageNames(); err != nil {
		return nil, err
	}
	files := filepath.Join(dir, "images")
	overlays := []realnode.Overlay{
		{
			Name: images["dataset-initializer"], Files: filepath.Join(files, "initializer"),
			Entrypoint: []string{"python", "-m", "pkg.initializers.dataset"}, Dir: "/app",
		},
		{Name: images["CACHE_IMAGE"], Files: filepath.Join(files, "cache"), Programs: "/cache"},
		{Name: images["node"], Files: filepath.Join(files, "torch"), Dir: "/workspace"},
	}
	const programs = "programs"
	err = errors.Join(
		os.CopyFS(filepath.Join(overlays[0].Files, "app"), os.DirFS(filepath.Join(cache, "app"))),
		copyFile(filepath.Join(cache, "head"), filepath.Join(overlays[1].Files, "cache", "head")),
		copyFile(filepath.Join(cache, "worker"), filepath.Join(overlays[1].Files, "cache", "worker")),
		copyFile(filepath.Join(programs, "train.py"), filepath.Join(overlays[2].Files, "workspace", "train.py")),
	)
	if err != nil {
		return nil, fmt.Errorf("putting the images together (make data-cache builds what they need): %w", err)
	}
	table, err = writeTable(ctx, programs, overlays[1].Files)
	return overlays, err
}

// writeTable writes the table into the files of the cache's image, and returns the URL of its metadata.
func writeTable(ctx context.Context, programs, image string) (string, error) {
	const folder = "/tmp/warehouse"
	host := filepath.Join(image, folder)
	if err := os.MkdirAll(host, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of the table: %w", err)
	}
	absolute, err := filepath.Abs(programs)
	if err != nil {
		return "", fmt.Errorf("finding the program that writes the table: %w", err)
	}
	if err := errors.Join(userland.Share(host, "warehouse"), userland.Share(absolute, "programs")); err != nil {
		return "", err
	}
	command := userland.Command(ctx, "python", "/tmp/programs/table.py", folder)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("writing the table: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// imageNames returns the images of runtime torch-distributed-with-cache: of its containers by their names, and that of
// the cache by the name of its variable.
func imageNames() (map[string]string, error) {
	runtimes, err := chart.Runtimes()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(
		runtimes,
		func(object *unstructured.Unstructured) bool { return object.GetName() == runtimeName },
	)
	if at < 0 {
		return nil, fmt.Errorf("%w: %s", errNoRuntime, runtimeName)
	}
	var runtime trainerv1alpha1.ClusterTrainingRuntime
	if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(runtimes[at].Object, &runtime); err != nil {
		return nil, fmt.Errorf("decoding runtime %s: %w", runtimeName, err)
	}
	names := map[string]string{}
	for _, job := range runtime.Spec.Template.Spec.ReplicatedJobs {
		for _, container := range job.Template.Spec.Template.Spec.Containers {
			names[container.Name] = container.Image
			for _, variable := range container.Env {
				names[variable.Name] = variable.Value
			}
		}
	}
	return names, nil
}

// copyFile copies a file, with its mode, into a folder that it makes.
func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	info, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	if err := os.WriteFile(to, content, info.Mode()); err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	return nil
}
