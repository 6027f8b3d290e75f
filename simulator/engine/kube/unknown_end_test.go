package kube_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/kube"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// gpus is a job of nodes that ask for so many of their eight GPUs.
func gpus(id string, submit, duration time.Duration, nodes, each int) trace.Job {
	return trace.Job{
		ID: id, Submit: submit, Duration: duration, Preemptible: true,
		Podsets: []trace.Podset{{Count: nodes, GPUs: each, CPU: 1000, Memory: 1 << 30}},
	}
}

// One job with an unknown end runs on one GPU for ten days. A gang of all 64 nodes waits for it, and 2,000 jobs of a
// node arrive over two days; each of them ends after exactly an hour, as was known. With a place reserved until that
// end, the fleet would be idle for ten days.
func TestKube_UnknownEndDoesNotIdleTheFleet(t *testing.T) {
	const day, small = 24 * time.Hour, 2000
	var jobs trace.Trace
	jobs.Jobs = append(jobs.Jobs, gpus("endless", 0, 10*day, 1, 1), gpus("whole", 10*time.Minute, time.Hour, 64, 8))
	first := 20 * time.Minute
	for i := range small {
		arrives := first + (time.Duration(i) * 2 * day / small).Truncate(time.Second)
		j := gpus(fmt.Sprintf("small%04d", i), arrives, time.Hour, 1, 8)
		j.Estimate = time.Hour
		jobs.Jobs = append(jobs.Jobs, j)
	}
	s := set(t, "h100-64", scenario.Options{}, jobs)
	u := useOf(s, play(t, s, kube.Lockstep), first, first+2*day)
	late := u.started["whole"] - u.ended["endless"]
	t.Logf("%.1f %% in use, mean wait %s, the gang starts %s after the end", 100*u.busy, u.wait, late)
	if u.busy < 0.6 || u.wait > 5*time.Minute {
		t.Errorf("%.3f in use, want 0.6; mean wait %s, want 5m at most", u.busy, u.wait)
	}
	if late < 0 || late > time.Minute {
		t.Errorf("the gang starts %s after the end of the last job in its place", late)
	}
}

// use holds the start and the end of each job, the part of the 512 accelerators that was in use over a time, and the
// waits of jobs of one node.
type use struct {
	started, ended map[string]time.Duration
	busy           float64
	wait           time.Duration
}

func useOf(s *scenario.Scenario, r *record, from, to time.Duration) use {
	u := use{started: make(map[string]time.Duration), ended: make(map[string]time.Duration)}
	used, now, waited, small := int64(0), time.Duration(0), time.Duration(0), 0
	for _, e := range r.events {
		if passed := min(e.At, to) - max(now, from); passed > 0 {
			u.busy += passed.Seconds() * float64(used) / 512 / (to - from).Seconds()
		}
		if now = e.At; e.Job == engine.None {
			continue
		}
		job := &s.Jobs[e.Job]
		switch e.Kind {
		case engine.Started:
			used, u.started[job.ID] = used+job.Accelerators, e.At
			if job.Accelerators == 8 {
				waited, small = waited+e.At-job.Submit, small+1
			}
		case engine.Ended:
			used, u.ended[job.ID] = used-job.Accelerators, e.At
		default:
		}
	}
	u.wait = waited / time.Duration(max(small, 1))
	return u
}
