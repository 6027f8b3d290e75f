package upgrade_test

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// settle waits until the controller has reconciled each job, and checks that the running ones are untouched.
func (j *jobs) settle() {
	j.t.Helper()
	j.eventually("a reconcile of each job", func() bool {
		usage, err := j.usage(j.t.Context())
		return err == nil && usage.Reconciles >= float64(len(kinds())*j.perKind)
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
			return state == between || state == waits && shapeOf(seen.name).torchRuns() && seen.added != with
		})
	})
	j.note("rendered "+how, now)
}

// wantStuck checks that exactly the expected jobs are not complete, and that each of those says that it was resumed.
func (j *jobs) wantStuck(expected func(name string) bool) {
	j.t.Helper()
	stuck := 0
	for name, job := range j.look().jobs {
		switch {
		case !expected(name):
			if job.state() != complete {
				j.t.Errorf("%s is not complete: %+v", name, job)
			}
		case !job.stuck():
			j.t.Errorf("%s is not stuck: %+v", name, job)
		default:
			stuck++
		}
	}
	if stuck > 0 {
		j.t.Logf("under %s %d jobs are stuck: JobSet refuses to patch what another release has rendered",
			j.table.release, stuck)
	}
}

func none(string) bool { return false }

// note adds a line to the transcript, and fails the test if a JobSet, a pod or a PodGroup of a running job has changed
// since the jobs were created. The PodGroups of jobs that have ended are deleted.
func (j *jobs) note(what string, now snapshot) {
	j.t.Helper()
	kept := 0
	for object, was := range j.untouched {
		switch is := now.running[object]; {
		case is == was, strings.HasPrefix(object, "PodGroup ") && now.jobs[was.job].complete:
			kept++
		default:
			j.t.Errorf("%s, %s: %s is %q, it was %q", j.table.release, what, object, is.digest, was.digest)
		}
	}
	for object, is := range now.running {
		if _, ok := j.untouched[object]; !ok && len(j.untouched) > 0 && !j.free[is.job] {
			j.t.Errorf("%s, %s: %s is new", j.table.release, what, object)
		}
	}
	j.table.add(what, now, kept, len(j.untouched))
}
