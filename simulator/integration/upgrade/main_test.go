// Package upgrade_test replaces the controller of one release by that of another, on an embedded cluster with jobs.
// Without arguments it runs its small form: a few jobs, this release, and one whose renderer differs. In make test-full
// there are 300 jobs and the previous release, which is built from the repository's history: go test -v
// ./simulator/integration/upgrade -args -previous 85ea028.
package upgrade_test

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
	previous = flag.String("previous", "", "the commit whose controller is replaced; empty for the small form")

	shared testcluster.Cluster
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("upgrade: skipped with -short")
		return
	}
	setting := testcluster.Setting{
		Name: "upgrade", Machines: "gb200-72", Options: cluster.Options{Mode: probe.Full}, Out: os.Stdout,
		Excuses: foreignRoles.include,
	}
	os.Exit(testcluster.Run(context.Background(), m, setting, func(s testcluster.Cluster) { shared = s }))
}

// jobsPerKind returns the number of jobs of each kind.
func jobsPerKind() int {
	if *previous == "" {
		return 6
	}
	return 100
}
