package contention_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
)

// The first gang leases n1, which is free at 01:40, and the second one n3, which is free at 02:20. Half of n2 and of n4
// is a service's, and the rest of n2 never becomes free. When the unit on n4 ends early, its half is too small for the
// second gang, and for the first one without the half of n2.
func TestLease_NotEvaluatedForWhatEarlierOnesAreOwed(t *testing.T) {
	s := owedScene(contention.None)
	p, err := contentiontest.NewPlayer(s, arrivals())
	if err != nil {
		t.Fatal(err)
	}
	play := func(until int64) int {
		t.Helper()
		if err := p.Play(until); err != nil {
			t.Fatal(err)
		}
		return p.Turns
	}
	before := play(hour + 4*minute)
	if after := play(hour + 6*minute); after != before {
		t.Errorf("%d evaluations at the end of the unit on n4, want none\n%s", after-before, last(p.Log))
	}
}

// The same, but the rest of n2 becomes free at 01:30. The first gang leaves n1 for n2 and n4. So the second one can have
// n1 from 01:40 on, and it learns of that in the round in which the unit on n4 ends.
func TestLease_HearsThatEarlierOnesLeftTheirPlace(t *testing.T) {
	p := end(t, owedScene(hour+30*minute), arrivals())
	first := slices.IndexFunc(
		p.Log,
		func(line string) bool { return strings.Contains(line, "01:05:00 first leases n2 n4") },
	)
	second := slices.IndexFunc(
		p.Log,
		func(line string) bool { return strings.Contains(line, "01:05:00 second leases n1") },
	)
	if first < 0 || second < first {
		t.Errorf("at 01:05 the first gang did not move, or the second one did not take its place\n%s", last(p.Log))
	}
}

// owedScene is a scene of four nodes in which two gangs arrive after an hour. The unit that uses half of n2 ends at
// an instant, None for never.
func owedScene(half int64) contentiontest.Scene {
	const never = contention.None
	runs := func(name string, node, gpus int, says, runs int64) contentiontest.Job {
		j := contentiontest.Job{
			Name:      name,
			Members:   1,
			GPUs:      gpus,
			Runs:      runs,
			Says:      says,
			Certainty: contention.Certain,
			On:        []int{node},
			Priority:  2,
		}
		if runs == never {
			j.Says, j.Certainty = 0, contention.Never
		}
		return j
	}
	waits := func(name string, members, gpus int) contentiontest.Job {
		return contentiontest.Job{
			Name:      name,
			Arrives:   hour,
			Members:   members,
			GPUs:      gpus,
			Runs:      hour,
			Says:      hour,
			Certainty: contention.Certain,
		}
	}
	first := waits("first", 2, 4)
	first.Priority = 1
	return contentiontest.Scene{Cliques: 1, Nodes: 4, GPUs: 8, Jobs: []contentiontest.Job{
		runs("a", 0, 8, hour+40*minute, hour+40*minute),
		runs("service-1", 1, 4, never, never),
		runs("b", 1, 4, half, half),
		runs("c", 2, 8, hour+80*minute, hour+80*minute),
		runs("service-2", 3, 4, never, never),
		runs("d", 3, 4, hour+100*minute, hour+5*minute),
		first,
		waits("second", 1, 8),
	}}
}
