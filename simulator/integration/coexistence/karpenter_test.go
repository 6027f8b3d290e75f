package coexistence_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// karpenterModule has a provider that makes nodes of KWOK.
const karpenterModule = "sigs.k8s.io/karpenter@v1.8.0"

var karpenter = flag.String("karpenter", "", "Karpenter with its provider for KWOK: go -C MODULE build -o FILE ./kwok")

// The real Karpenter makes nodes for all members of a gang that waits, and for as many of the next gang as its pool
// allows, which cannot start on them. In mode none it makes none.
func TestKarpenter_NodesForGangs(t *testing.T) {
	startKarpenter(t)
	rows := []string{"neighbors.demand.mode  gangs of four  nodes made  pods running  nodes idle"}
	for _, c := range []struct {
		mode                 string
		gangs, nodes, starts int
	}{{"pods", 1, 4, 4}, {"pods", 2, 6, 4}, {"none", 2, 0, 0}} {
		t.Run(fmt.Sprintf("%s-%d", c.mode, c.gangs), func(t *testing.T) {
			if c.mode != "pods" {
				install(t, render.Default().With("neighbors.demand.mode", c.mode))
			}
			makeNamespace(t)
			pool := fmt.Sprintf("%s-%d", c.mode, c.gangs)
			addPool(t, pool)
			for i := range c.gangs {
				gang(t, fmt.Sprintf("train-%d", i), 4, "nodeSelector: {pool: "+pool+"}")
			}
			if c.nodes > 0 {
				testcluster.Within(
					t,
					time.Minute,
					"Karpenter's nodes",
					func() bool { return claimed(t, pool) >= c.nodes && running(t, "train") == c.starts },
				)
			}
			time.Sleep(25 * time.Second) // Karpenter gathers pods for ten seconds at most
			made, runs := claimed(t, pool), running(t, "train")
			if made != c.nodes || runs != c.starts {
				t.Errorf("%d nodes were made, and %d pods run; want %d and %d", made, runs, c.nodes, c.starts)
			}
			rows = append(rows, fmt.Sprintf("%-22s  %13d  %10d  %12d  %10d", c.mode, c.gangs, made, runs, made-runs))
		})
	}
	documented(t, map[string]string{"karpenter": strings.Join(rows, "\n")})
}

// claimed returns the number of nodes that Karpenter made, or is making, for a pool.
func claimed(t *testing.T, pool string) int {
	t.Helper()
	claims := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	list, err := shared.Dynamic.Resource(claims).
		List(t.Context(), metav1.ListOptions{LabelSelector: "karpenter.sh/nodepool=" + pool})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// addPool adds a pool of at most six nodes with 8 GPUs, which is deleted with its nodes when the test ends.
func addPool(t *testing.T, pool string) {
	t.Helper()
	content, err := os.ReadFile("testdata/karpenter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	create(t, strings.ReplaceAll(string(content), "POOL", pool))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		pools := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
		if err := shared.Dynamic.Resource(pools).
			Delete(ctx, pool, metav1.DeleteOptions{}); err != nil &&
			!apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// startKarpenter installs Karpenter's definitions and runs it until the test ends.
func startKarpenter(t *testing.T) {
	t.Helper()
	if *karpenter == "" {
		t.Skip("needs -args -karpenter FILE")
	}
	text, err := exec.CommandContext(t.Context(), "go", "-C", t.TempDir(), "mod", "download", "-json", karpenterModule).
		Output()
	if err != nil {
		t.Fatal(err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(text, &module); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"pkg/apis/crds", "kwok/apis/crds"} {
		files, err := filepath.Glob(filepath.Join(module.Dir, folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := render.Objects(content)
			if err != nil {
				t.Fatal(err)
			}
			if err := shared.ApplyAll(t.Context(), objects); err != nil {
				t.Fatal(err)
			}
		}
	}
	log, err := os.Create(filepath.Join(shared.Dir(), "logs", "karpenter.log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, *karpenter)
	command.Stdout, command.Stderr = log, log
	command.Env = append(
		os.Environ(),
		"KUBECONFIG="+shared.Kubeconfig(),
		"DISABLE_LEADER_ELECTION=true",
		"SYSTEM_NAMESPACE=kube-system",
		"METRICS_PORT=0",
		"HEALTH_PROBE_PORT=0",
		"KUBERNETES_MIN_VERSION=1.19.0-0",
		"INSTANCE_TYPES_FILE_PATH=testdata/instance-types.json",
	)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // it was killed
		_ = log.Close()
	})
}
