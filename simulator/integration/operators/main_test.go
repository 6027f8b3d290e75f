// Package operators_test has controllers of other projects make gangs on an embedded cluster, each kind with its own
// controller as it was released. They are built on the first run (a quarter of an hour), so it runs only when it is
// asked for: go test -v ./simulator/integration/operators -args -operators bin/operators.
package operators_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

var (
	built = flag.String(
		"operators",
		"",
		"the folder of operators, which are built into it if they are not there; empty to skip the tests",
	)
	write = flag.Bool("write", false, "write the table of kinds into docs/dialects.md")
	mode  = flag.String("mode", string(probe.Full), "what the control plane offers: full, groups or resources")

	native  = flag.Bool("native", false, "in mode resources, have Kubernetes' own PodGroups served, too")
	release = flag.String("kubernetes", cluster.NewestKubernetes, "the minor release of the control plane")

	shared testcluster.Cluster
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == sparkSubmit {
		if err := submitted(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if testing.Short() || *built == "" {
		fmt.Println("operators: skipped without -args -operators bin/operators")
		return
	}
	values, err := configured("../../../manifests/dialects")
	if err != nil {
		fmt.Println("operators:", err)
		os.Exit(1)
	}
	if *native {
		values["gangApi"] = "resources" // Kubernetes' own would be detected and used
	}
	setting := testcluster.Setting{
		Name: "operators", Machines: "gb200-72", Out: os.Stdout, Regates: true,
		Options: cluster.Options{
			Mode: probe.Mode(
				*mode,
			),
			Kubernetes: *release,
			Native:     *native,
			Kueue:      true,
			KueuePods:  true,
			Values:     values,
		},
	}
	os.Exit(testcluster.Run(context.Background(), m, setting, func(s testcluster.Cluster) { shared = s }))
}

// configured are values of the chart with all dialects that ship as rows.
func configured(folder string) (map[string]any, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%d dialects in %s: %w", len(files), folder, err)
	}
	var rows []any
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a dialect: %w", err)
		}
		var row map[string]any
		if err := yaml.Unmarshal(content, &row); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		rows = append(rows, row)
	}
	return map[string]any{"scheduler": map[string]any{
		"aliases":    []any{"scheduler-plugins-scheduler"}, // the name that KubeRay writes
		"pluginArgs": map[string]any{"GangPlacement": map[string]any{"dialects": rows}},
	}}, nil
}
