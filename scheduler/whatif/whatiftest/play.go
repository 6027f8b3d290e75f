package whatiftest

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/scheduler/whatif"
)

// Play plays the scripts of a folder. Commands that draw change the cluster of their script; answer returns the output
// of any other command.
func Play(t *testing.T, folder string, answer func(*testing.T, whatif.Objects, *datadriven.TestData) string) {
	t.Helper()
	datadriven.Walk(t, folder, func(t *testing.T, file string) {
		t.Helper()
		var objects whatif.Objects
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			drawn, err := Draw(&objects, d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if drawn {
				return "ok\n"
			}
			return answer(t, objects, d)
		})
	})
}
