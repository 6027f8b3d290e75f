// Package sdk_test plays every call of the Kubeflow SDK against an embedded cluster with the shipped chart, with an
// account that has the role edit in one namespace. It needs a Python environment of each release of the SDK, so it runs
// only when it is asked for: make test-sdk.
package sdk_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

var errNoFolder = errors.New("it names no folder")

// folders are Python environments.
type folders []string

// String returns the folders as the flags would name them.
func (f *folders) String() string { return strings.Join(*f, ",") }

// Set adds a folder.
func (f *folders) Set(folder string) error {
	if folder == "" {
		return errNoFolder
	}
	*f = append(*f, folder)
	return nil
}

var (
	environments folders
	write        = flag.Bool("write", false, "write the table of docs/sdk.md, from the first environment")

	shared testcluster.Cluster
)

func TestMain(m *testing.M) {
	flag.Var(&environments, "sdk", "a folder of a Python environment with the SDK, from the root of the source tree")
	flag.Parse()
	if testing.Short() || len(environments) == 0 {
		fmt.Println("sdk: skipped without -args -sdk FOLDER (make test-sdk)")
		return
	}
	setting := testcluster.Setting{
		Name:     "sdk",
		Machines: "gb200-72",
		Options:  cluster.Options{Mode: probe.Full},
		Out:      os.Stdout,
	}
	os.Exit(testcluster.Run(context.Background(), m, setting, func(s testcluster.Cluster) { shared = s }))
}
