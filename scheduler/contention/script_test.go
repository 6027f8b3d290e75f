package contention_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
)

// Each script in testdata tells a scene of the queue and draws what the machine does with it. Run with -rewrite to write new
// outputs; commit them only if you can explain the difference. The engines play those of scenes, too.
func TestMachine_Scripts(t *testing.T) {
	for _, folder := range []string{"testdata/scenes", "testdata/promise"} {
		datadriven.Walk(t, folder, playScript)
	}
}

func playScript(t *testing.T, path string) {
	t.Helper()
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

// The page for operators shows lines of the scene, and no others.
func TestPreemptionPage_ShowsItsScene(t *testing.T) {
	page, err := os.ReadFile("../../docs/preemption.md")
	if err != nil {
		t.Fatal(err)
	}
	scene, err := os.ReadFile("testdata/scenes/45_preemption_pays.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```\n08:00:00")
	shown, _, _ = strings.Cut("08:00:00"+shown, "```")
	if strings.Count(shown, "\n") < 2 {
		t.Fatal("docs/preemption.md shows no scene")
	}
	for line := range strings.Lines(shown) {
		if !strings.Contains(string(scene), "\n"+line) {
			t.Errorf("docs/preemption.md shows %q, which the scene does not have", line)
		}
	}
}
