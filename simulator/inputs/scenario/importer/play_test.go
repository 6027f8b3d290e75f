package importer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// told records the jobs that start, and their nodes.
type told struct {
	scene *scenario.Scenario
	lines []string
}

func (l *told) Happens(e engine.Event) {
	if e.Kind != engine.Started {
		return
	}
	words := []string{e.At.String(), l.scene.Jobs[e.Job].ID}
	for _, node := range e.Nodes {
		words = append(words, l.scene.Ledger.Tree.Node(node))
	}
	l.lines = append(l.lines, strings.Join(words, " "))
}

func (*told) Decides(engine.Decision) {}

// A snapshot is played on from its state: waiting gangs get the freed capacity, the highest priority first and then the
// longest wait, and jobs of a trace follow.
func TestFromSnapshot_PlaysOn(t *testing.T) {
	whole := func(name string) string { return member(name, 0, 8, "", "") + member(name, 1, 8, "", "") }
	tr := jobs(job("new", 2, 8))
	s := from(t, racks()+
		gang(
			"ends",
			0,
			"expected-end=2026-11-22T13:00:00Z",
		)+member("ends", 0, 8, on("a1"), "")+member("ends", 1, 8, on("a2"), "")+
		pod("service", 1, on("b1"), "status: {phase: Running, startTime: \"2026-11-22T11:30:00Z\"}\n")+
		gang("young", 0, "queued-at=2026-11-22T11:50:00Z", "required-topology=tier-0")+whole("young")+
		gang("old", 0, "queued-at=2026-11-22T11:40:00Z", "required-topology=tier-0")+whole("old")+
		gang(
			"urgent",
			9,
			"queued-at=2026-11-22T11:59:00Z",
			"required-topology=tier-0",
		)+whole("urgent"), &tr, scenario.Options{DefaultRunTime: time.Hour})
	l := &told{scene: s}
	if err := direct.NewEngine(direct.Options{}, func() time.Time { return s.Begin }).
		Run(t.Context(), s, l); err != nil {
		t.Fatal(err)
	}
	want := []string{"1h0m0s ml.urgent a1 a2", "2h0m0s ml.old a1 a2", "3h0m0s ml.young a1 a2", "4h0m0s new a1 a2"}
	if diff := cmp.Diff(want, l.lines); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}
