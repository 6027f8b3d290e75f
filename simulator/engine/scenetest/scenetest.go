// Package scenetest reads the scenes of the queue for tests of engines.
package scenetest

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
)

// ReadScene returns the scene of a script's file, and the instant until which the script plays it. A script with a policy of its own fails
// the test: engines have none.
func ReadScene(t *testing.T, path string) (scene contentiontest.Scene, until int64) {
	t.Helper()
	script := &contentiontest.Script{}
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		var args []contentiontest.Arg
		for _, arg := range d.CmdArgs {
			args = append(args, contentiontest.Arg{Key: arg.Key, Value: strings.Join(arg.Vals, ",")})
		}
		if err := script.Build(d.Cmd, args); err != nil {
			t.Errorf("%s: %v", d.Pos, err)
		}
		return d.Expected
	})
	if script.Policy() != nil {
		t.Errorf("%s: the script has a policy of its own", path)
	}
	return script.Scene(), script.Until()
}
