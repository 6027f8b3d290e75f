package frameworks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An elastic training by torchrun trains on two nodes, gives one to a job of higher priority and continues with the
// other, and takes it back when that job has ended. It never begins anew, and completes.
func TestElastic_TorchShrinksAndGrows(t *testing.T) {
	makeUrgent(t)
	ended := begin(t, "elastic")
	before := ranks(t, "elastic", 2)
	ready := func(nodes int64) {
		t.Helper()
		within(t, 3*time.Minute, "its status has the ready nodes", func() bool {
			return statusOf(t, "elastic", "scheduling", "elastic")["readyNodes"] == nodes
		})
	}
	ready(2)
	within(t, 3*time.Minute, "it trains", func() bool {
		steps, err := os.ReadFile(filepath.Join(checkpoints, "step-elastic"))
		return err == nil && len(steps) > 1 // ten steps
	})
	visitor := begin(t, "visitor")
	ranks(t, "visitor", 1)
	ready(1)
	completed(t, <-visitor, "rank 0 ends")
	if grown := ranks(t, "elastic", 2, before[1:]...); grown[0].UID != before[0].UID {
		t.Errorf("rank 0 was %s and is %s", before[0].Name, grown[0].Name)
	}
	job := completed(t, <-ended, "2 nodes begin at step 0", "1 nodes begin at step", "2 nodes end at step 300")
	if anew := strings.Count(job.log(), "begin at step 0\n"); anew != 1 {
		t.Errorf("it began %d times at step 0", anew)
	}
}
