package report_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/report"
)

// TestMap_ShowsGangsOnTheirNodes unpacks the map's columns at many instants and holds them against the events.
func TestMap_ShowsGangsOnTheirNodes(t *testing.T) {
	s := short(t)
	var told eventLog
	record := report.NewRecorder(s)
	if err := direct.NewEngine(direct.Options{}, still().Now).Run(t.Context(), s, both{&told, record}); err != nil {
		t.Fatal(err)
	}
	_, c := written(t, report.Input{Card: measure.Scorecard{Scheduler: "x"}, Record: record})
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		at := time.Duration(r.Int64N(int64(told.last()/time.Second))) * time.Second
		second := int64(at / time.Second)
		want := told.holders(s, at)
		got := make(map[int]map[int]int)
		from, stretch := int64(0), 0
		taken := make(map[[2]int]bool)
		for i, delta := range c.Map.Starts {
			from += delta
			active := from <= second && (c.Map.Lasts[i] < 0 || from+c.Map.Lasts[i] > second)
			node := 0
			for range c.Map.Runs[i] {
				node += c.Map.First[stretch]
				for range c.Map.Count[stretch] {
					for square := 0; active && square < 32; square++ {
						if c.Map.Bits[stretch]>>square&1 == 0 {
							continue
						}
						if taken[[2]int{node, square}] || square >= c.Map.Layout.Squares[node] {
							t.Fatalf("at %s square %d of node %d has two owners, or is not there", at, square, node)
						}
						taken[[2]int{node, square}] = true
						if got[c.Map.Jobs[i]] == nil {
							got[c.Map.Jobs[i]] = make(map[int]int)
						}
						got[c.Map.Jobs[i]][node]++
					}
					node++
				}
				stretch++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("at %s: %s", at, diff)
		}
	}
	if len(c.Map.Outages) != 3 || c.Map.Outages[0][3] != 0 || c.Map.Outages[2][3] != 1 {
		t.Errorf("outages are %v", c.Map.Outages)
	}
	if c.Map.Omitted != 0 || len(c.Map.Layout.Racks) != 74 {
		t.Errorf("%d stays are left out, %d nodes", c.Map.Omitted, len(c.Map.Layout.Racks))
	}
	if len(c.Map.Layout.RackNames) != 5 { // four racks, and the machines that are in none
		t.Errorf("racks are %q", c.Map.Layout.RackNames)
	}
}
