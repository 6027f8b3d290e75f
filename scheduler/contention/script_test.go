package contention_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
)

// Each script in testdata tells a scene of the queue and draws what the machine does with it. Run with -rewrite to write new
// outputs; commit them only if you can explain the difference. The engines play them, too.
func TestMachine_Scripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scenes", playScript)
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

// The pages for operators show lines of scenes, and no others.
func TestPreemptionPage_ShowsItsScene(t *testing.T) {
	showsScenes(t, "preemption.md", "45_preemption_pays.txt")
}

func TestQueueingPage_ShowsItsScenes(t *testing.T) {
	showsScenes(t, "queueing.md", "47_shorter_passes_by_its_slack.txt", "48_horizon_grows_with_the_wait.txt")
}

// showsScenes checks that the blocks of a page that begin with an instant have lines of these scenes, block by block.
func showsScenes(t *testing.T, name string, scenes ...string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```\n(\\d\\d:.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != len(scenes) {
		t.Fatalf("docs/%s shows %d scenes, want %d", name, len(blocks), len(scenes))
	}
	for i, block := range blocks {
		scene, err := os.ReadFile("testdata/scenes/" + scenes[i])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), scenes[i]) {
			t.Errorf("docs/%s does not name %s", name, scenes[i])
		}
		for line := range strings.Lines(block[1]) {
			if !strings.Contains(string(scene), "\n"+line) {
				t.Errorf("docs/%s shows %q, which %s does not have", name, line, scenes[i])
			}
		}
	}
}
