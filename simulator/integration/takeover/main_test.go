// Package takeover_test lets Lockstep take over from Kubeflow Trainer's own manager on an embedded cluster with jobs,
// run beside it, and hand back. The managers are upstream's releases, built by make, so it runs only when it is asked
// for: go test -v ./simulator/integration/takeover -args -trainer bin/kubeflow-trainer/v2.3.0 -trainer
// bin/kubeflow-trainer/v2.2.1.
package takeover_test

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

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

var (
	trainers folders
	write    = flag.Bool("write", false, "write the commands of the first release and their output to docs/takeover.md")

	shared testcluster.Cluster
)

// folders is a flag that may be given more than once.
type folders []string

func (f *folders) String() string { return strings.Join(*f, " ") }

func (f *folders) Set(folder string) error {
	*f = append(*f, folder)
	return nil
}

func TestMain(m *testing.M) {
	flag.Var(&trainers, "trainer", "a folder v<release> with trainer-controller-manager; may be repeated")
	flag.Parse()
	if testing.Short() || len(trainers) == 0 {
		fmt.Println("takeover: skipped without -args -trainer bin/kubeflow-trainer/v2.3.0, which make builds")
		return
	}
	setting := testcluster.Setting{
		Name: "takeover", Machines: "gb200-72", Options: cluster.Options{Mode: probe.Full}, Out: os.Stdout,
	}
	os.Exit(testcluster.Run(context.Background(), m, setting, func(s testcluster.Cluster) { shared = s }))
}

// releases are the releases of Kubeflow Trainer that were asked for, with the manifests of their modules.
func releases(t *testing.T) []cluster.Trainer {
	t.Helper()
	root := sourceTree(t)
	var found []cluster.Trainer
	for _, folder := range trainers {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(root, folder)
		}
		version := filepath.Base(folder)
		text, err := exec.CommandContext(t.Context(), "go", "-C", t.TempDir(), "mod", "download", "-json",
			"github.com/kubeflow/trainer/v2@"+version).Output()
		if err != nil {
			t.Fatalf("downloading Kubeflow Trainer %s: %v", version, err)
		}
		var module struct{ Dir string }
		if err := json.Unmarshal(text, &module); err != nil {
			t.Fatal(err)
		}
		found = append(found, cluster.Trainer{
			Version: version, Manager: filepath.Join(folder, "trainer-controller-manager"),
			Manifests: filepath.Join(module.Dir, "manifests", "base"),
		})
	}
	return found
}
