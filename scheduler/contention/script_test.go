package contention_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
)

// Each script in testdata describes a scene of the queue and draws the machine's actions. Run with -rewrite to write
// new outputs; commit them only if you can explain the difference. The engines play those in scenes, too: they have no
// policies of their own.
func TestMachine_Scripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scenes", playScript)
	datadriven.Walk(t, "testdata/policies", playScript)
}

// longScenes take a minute together: -short leaves them out.
const longScenes = "04_stream.txt 26_renamed.txt"

func playScript(t *testing.T, path string) {
	t.Helper()
	if testing.Short() && strings.Contains(longScenes, filepath.Base(path)) {
		t.Skip("with -short, long scenes are left out")
	}
	script := &contentiontest.Script{}
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		var args []contentiontest.Arg
		for _, arg := range d.CmdArgs {
			value := ""
			if len(arg.Vals) > 0 {
				value = arg.Vals[0]
			}
			args = append(args, contentiontest.Arg{Key: arg.Key, Value: value})
		}
		out, err := script.Do(d.Cmd, args)
		if err != nil {
			t.Errorf("%s: %v", d.Pos, err)
			return out + "error: " + err.Error() + "\n"
		}
		return out
	})
}
