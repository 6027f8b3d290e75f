package topology_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/topology/topologytest"
)

// TestScripts runs the pictures in testdata. To change them, run with -rewrite, read the diff and keep it only if every
// line of it can be explained.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		t.Helper()
		var script topologytest.Script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			out, err := script.Do(d.Cmd, args(d))
			if err != nil {
				d.Fatalf(t, "%s: %v", d.Cmd, err)
			}
			return out
		})
	})
}

func args(d *datadriven.TestData) []topologytest.Arg {
	found := make([]topologytest.Arg, len(d.CmdArgs))
	for i, a := range d.CmdArgs {
		found[i].Key = a.Key
		if len(a.Vals) > 0 {
			found[i].Value = a.Vals[0]
		}
	}
	return found
}
