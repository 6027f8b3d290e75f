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

// The same, but the rest of n2 becomes free at 01:30. The first gang leaves n1 for n2 and n4. So the second one can
// have n1 from 01:40 on, and it learns of that in the round in which the unit on n4 ends.
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

// Two units on n3 end at 01:05. One was expected at 03:00, so its end allows an earlier place, but its half of n3 makes
// none. The end of the other is unknown, and guessed before the lease's instant; together they make one.
func TestLease_GainsFromAllEndsOfARound(t *testing.T) {
	unknown := runningJob("d", 2, 4, 0, hour+5*minute)
	unknown.Certainty = contention.Unknown
	p := end(t, contentiontest.Scene{Cliques: 1, Nodes: 3, GPUs: 8, Jobs: []contentiontest.Job{
		runningJob("a", 0, 8, hour+40*minute, hour+40*minute),
		runningJob("b", 1, 8, hour+80*minute, hour+80*minute),
		runningJob("c", 2, 4, 3*hour, hour+5*minute),
		unknown,
		waitingJob("gang", 2, 8),
	}}, arrivals())
	if !logged(p, "01:05:00 gang leases n1 n3") {
		t.Errorf("the gang has no earlier place\n%s", last(p.Log))
	}
}

// The gang is promised n1 and n2 by 03:00. At 01:05 n3 becomes free, and at 01:06 n4; an urgent job takes n3 until
// 02:00, and the gang leases n1 and n4 from 01:40 on. At 01:10 an urgent job takes n4 until 02:30, in the round in
// which a unit ends that was expected later. That is within the promise, but n1 and n3 are free at 02:00.
func TestLease_LooksForAnotherPlaceThanOneThatWasTaken(t *testing.T) {
	p := end(t, contentiontest.Scene{Cliques: 1, Nodes: 5, GPUs: 8, Jobs: []contentiontest.Job{
		runningJob("a", 0, 8, hour+40*minute, hour+40*minute),
		runningJob("b", 1, 8, 3*hour, 3*hour),
		runningJob("c", 2, 8, 4*hour, hour+5*minute),
		runningJob("d", 3, 8, 4*hour, hour+6*minute),
		runningJob("e", 4, 4, 4*hour, hour+10*minute),
		runningJob("service", 4, 4, 0, contention.None),
		waitingJob("gang", 2, 8),
		urgentJob("urgent-1", hour+6*minute, 2*hour),
		urgentJob("urgent-2", hour+10*minute, 2*hour+30*minute),
	}}, arrivals())
	if !logged(p, "01:10:00 gang leases n1 n3, closed from 02:00:00") {
		t.Errorf("the gang waits for the place that was taken\n%s", last(p.Log))
	}
}

// From 01:05 on the gang leases n1 and n3, which is free. At 01:10 an urgent job takes n3 until 03:10, and no unit ends
// then. The gang was promised n1 and n2 by 02:20, and they are still to be had.
func TestLease_KeepsItsPromiseElsewhere(t *testing.T) {
	p := end(t, contentiontest.Scene{Cliques: 1, Nodes: 3, GPUs: 8, Jobs: []contentiontest.Job{
		runningJob("a", 0, 8, hour+40*minute, hour+40*minute),
		runningJob("b", 1, 8, hour+80*minute, hour+80*minute),
		runningJob("c", 2, 8, 3*hour, hour+5*minute),
		waitingJob("gang", 2, 8),
		urgentJob("urgent", hour+10*minute, 3*hour+10*minute),
	}}, arrivals())
	if !logged(p, "01:10:00 gang leases n1-n2") {
		t.Errorf("the gang is told a later start than was promised\n%s", last(p.Log))
	}
}

// logged reports whether a line of the log has this text.
func logged(p *contentiontest.Player, text string) bool {
	return slices.ContainsFunc(p.Log, func(line string) bool { return strings.Contains(line, text) })
}

// owedScene is a scene of four nodes in which two gangs arrive after an hour. The unit that uses half of n2 ends at
// an instant, None for never.
func owedScene(half int64) contentiontest.Scene {
	const never = contention.None
	first := waitingJob("first", 2, 4)
	first.Priority = 1
	return contentiontest.Scene{Cliques: 1, Nodes: 4, GPUs: 8, Jobs: []contentiontest.Job{
		runningJob("a", 0, 8, hour+40*minute, hour+40*minute),
		runningJob("service-1", 1, 4, never, never),
		runningJob("b", 1, 4, half, half),
		runningJob("c", 2, 8, hour+80*minute, hour+80*minute),
		runningJob("service-2", 3, 4, never, never),
		runningJob("d", 3, 4, hour+100*minute, hour+5*minute),
		first,
		waitingJob("second", 1, 8),
	}}
}

// runningJob uses so many accelerators of a node from the start until an instant, and was expected to end at another
// one. Services never end.
func runningJob(name string, node, gpus int, says, until int64) contentiontest.Job {
	j := contentiontest.Job{Name: name, Members: 1, GPUs: gpus, Runs: until, On: []int{node}, Priority: 2}
	if j.Certainty = contention.Never; until != contention.None {
		j.Says, j.Certainty = says, contention.Certain
	}
	return j
}

// waitingJob is a gang that arrives after an hour and runs for an hour.
func waitingJob(name string, members, gpus int) contentiontest.Job {
	j := contentiontest.Job{Name: name, Arrives: hour, Members: members, GPUs: gpus, Runs: hour}
	j.Says, j.Certainty = hour, contention.Certain
	return j
}

// urgentJob needs a node at once, from one instant until another.
func urgentJob(name string, from, until int64) contentiontest.Job {
	j := waitingJob(name, 1, 8)
	j.Arrives, j.Priority, j.Runs, j.Says = from, 2, until-from, until-from
	return j
}
