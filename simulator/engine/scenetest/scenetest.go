// Package scenetest reads the scenes of the queue for tests of engines.
package scenetest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
)

// Script describes a play.
type Script struct {
	Scene contentiontest.Scene
	// Until is the instant until which it plays, in seconds.
	Until int64
	// Policy is the default one, or that with the discipline Backfill.
	Policy contention.Policy
}

// Options returns the options with which engine direct plays the script.
func (s Script) Options() direct.Options {
	o := direct.Options{Preempt: true}
	if s.Policy.Discipline == contention.Backfill() {
		o.Discipline = direct.Backfill
	}
	return o
}

// ReadScene reads a script's file. A script with another policy than Script.Policy fails the test: engines have none.
func ReadScene(t *testing.T, path string) Script {
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
	out := Script{Scene: script.Scene(), Until: script.Until(), Policy: contention.DefaultPolicy()}
	if own := script.Policy(); own != nil {
		out.Policy.Discipline = contention.Backfill()
		if !reflect.DeepEqual(*own, out.Policy) {
			t.Errorf("%s: the script has a policy of its own", path)
		}
	}
	return out
}
