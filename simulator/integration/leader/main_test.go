// Package leader_test changes the leader of two replicas of the shipped controller, and of the shipped scheduler, on an
// embedded cluster. The bounds are asserted with -args -long, in several rounds; without it, in one round, with
// slack for machines with something else to do.
package leader_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

var (
	long = flag.Bool("long", false, "several rounds, and no slack")

	shared testcluster.Cluster
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("leader: skipped with -short")
		return
	}
	setting := testcluster.Setting{
		Name: "leader", Machines: "gb200-72", Options: cluster.Options{Mode: probe.Full}, Out: os.Stdout,
	}
	os.Exit(testcluster.Run(context.Background(), m, setting, func(s testcluster.Cluster) { shared = s }))
}

// rounds returns the number of tries of each change of the leader: the instant of a renewal in its period is random.
func rounds() int {
	if *long {
		return 8
	}
	return 1
}

// tries limits the repetitions of a silence that lasted longer than meant.
const tries = 3

// within returns a bound on waiting of a machine that does nothing else; where other tests run too, three times that,
// and the wait that was measured there with an undisturbed leader.
func within(bound, undisturbed time.Duration) time.Duration {
	if *long {
		return bound
	}
	return bound*3 + undisturbed
}
