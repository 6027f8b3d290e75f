package schedperf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/scheduler/schedperf"
)

// TestDerive_FindsAllWorkloads finds each row in upstream's files and compares its number of nodes and pods.
func TestOrdinary_ListsEveryKindSmallAndLarge(t *testing.T) {
	seen := make(map[string]bool)
	sizes := make(map[string]map[int]bool)
	for _, w := range schedperf.Ordinary() {
		if seen[w.String()] {
			t.Errorf("%s is listed twice", w)
		}
		seen[w.String()] = true
		if w.Nodes < 500 || w.Nodes > 5000 || w.Count <= 0 {
			t.Errorf("%s has %d nodes and %d pods", w, w.Nodes, w.Count)
		}
		if sizes[w.Dir] == nil {
			sizes[w.Dir] = make(map[int]bool)
		}
		sizes[w.Dir][w.Nodes] = true
	}
	both := map[int]bool{500: true, 5000: true}
	want := map[string]map[int]bool{
		"misc":     {500: true, 1000: true, 5000: true}, // 1,000 nodes: mixed churn
		"affinity": both, "topology_spreading": both, "volumes": both, "dra": both, "default_preemption": both,
	}
	if diff := cmp.Diff(want, sizes); diff != "" {
		t.Errorf("sizes by folder; want -, got +:\n%s", diff)
	}
}

func TestRows(t *testing.T) {
	count := make(map[string]int)
	for _, set := range []string{"gangs", "ordinary", "quick", "all"} {
		workloads, err := schedperf.Rows(set)
		if err != nil {
			t.Fatal(err)
		}
		count[set] = len(workloads)
		for _, w := range workloads {
			if set == "quick" && w.Nodes != 500 {
				t.Errorf("the quick row %s has %d nodes", w, w.Nodes)
			}
		}
	}
	if count["all"] != count["gangs"]+count["ordinary"] || count["quick"] == 0 || count["quick"] >= count["ordinary"] {
		t.Errorf("the sets have %v rows", count)
	}
	if _, err := schedperf.Rows("some"); err == nil {
		t.Error("an unknown set: want an error")
	}
}
