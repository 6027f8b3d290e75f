package upgrade_test

import (
	"maps"
	"slices"
	"time"
)

// settle waits until the controller has reconciled each job, and checks that the running ones are untouched.
func (j *jobs) settle() {
	j.t.Helper()
	j.eventually("a reconcile of each job", func() bool {
		usage, err := j.usage(j.t.Context())
		return err == nil && usage.Reconciles >= float64(len(kinds())*jobsPerKind())
	})
	time.Sleep(3 * time.Second) // an evicted pod or a replaced JobSet shows some moments after the reconcile
	j.note("reconciled", j.look())
}

// wantRendered waits until the JobSets of all waiting jobs have the next release's variable, or none of them has it.
func (j *jobs) wantRendered(how string, with bool) {
	j.t.Helper()
	now := j.until("the rendering "+how, func(s snapshot) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(s.jobs)), func(seen jobSeen) bool {
			state := seen.state()
			return state == between || state == waits && seen.added != with
		})
	})
	j.note("rendered "+how, now)
}

// wantStuck checks that so many jobs are not complete, and that each of those says that it was resumed.
func (j *jobs) wantStuck(want int) {
	j.t.Helper()
	var stuck []string
	for name, job := range j.look().jobs {
		if job.state() == complete {
			continue
		}
		stuck = append(stuck, name)
		if !job.stuck() {
			j.t.Errorf("%s is not complete, and not stuck either: %+v", name, job)
		}
	}
	slices.Sort(stuck)
	if len(stuck) != want {
		j.t.Errorf("%d jobs are stuck, want %d: %v", len(stuck), want, stuck)
	}
	if len(stuck) > 0 {
		j.t.Logf("under %s %d jobs are stuck, from %s to %s: JobSet refuses to patch what another release has rendered",
			j.table.release, len(stuck), stuck[0], stuck[len(stuck)-1])
	}
}

// note adds a line to the transcript, and fails the test if a JobSet or a pod of a running job has changed since the jobs were created.
func (j *jobs) note(what string, now snapshot) {
	j.t.Helper()
	kept := 0
	for object, digest := range j.untouched {
		if now.running[object] == digest {
			kept++
		} else {
			j.t.Errorf("%s, %s: %s is %q, it was %q", j.table.release, what, object, now.running[object], digest)
		}
	}
	for object := range now.running {
		if _, ok := j.untouched[object]; !ok && j.untouched != nil {
			j.t.Errorf("%s, %s: %s is new", j.table.release, what, object)
		}
	}
	j.table.add(what, now, kept, len(j.untouched))
}
