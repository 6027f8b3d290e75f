package testcluster

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/realnode"
)

// RealSetting describes tests on real nodes.
type RealSetting struct {
	// Name is the name of the tests in output.
	Name string
	// Start brings up a cluster and its nodes, with files in a folder, in the namespaces of realnode.
	Start func(ctx context.Context, dir string) (*cluster.Cluster, error)
	// Done is called when all tests have run; nil for nothing.
	Done func() error
	Out  io.Writer
}

// Say prints a line of the setting's progress.
func (s RealSetting) Say(line string) { _, _ = fmt.Fprintln(s.Out, s.Name+": "+line) }

// RunReal builds missing programs where there is a network, and then starts the test binary again in namespaces of its
// own, runs the tests in there and returns their exit code.
func RunReal(ctx context.Context, m *testing.M, setting RealSetting) int {
	if !realnode.Again() {
		if _, err := cluster.Build(ctx, setting.Say); err != nil {
			setting.Say(err.Error())
			return 1
		}
	}
	return realnode.Main(ctx, nil, func(ctx context.Context, in realnode.Inside) int {
		c, err := setting.Start(ctx, in.Dir)
		if c != nil {
			defer c.Stop(ctx)
		}
		if err != nil {
			setting.Say(err.Error())
			return 1
		}
		code := m.Run()
		if setting.Done == nil {
			return code
		}
		if err := setting.Done(); err != nil {
			setting.Say(err.Error())
			return max(code, 1)
		}
		return code
	})
}
