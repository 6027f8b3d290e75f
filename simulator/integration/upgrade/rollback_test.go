package upgrade_test

import (
	"strings"
	"testing"
)

// Of 300 jobs, a third queued, a third suspended by its owner and a third running, all complete when this release is
// installed over the previous one, has jobs of its own, and the previous one is installed again by the commands of
// docs/trust.md, and this one again. No running pod is touched.
func TestUpgrade_ThereAndBack(t *testing.T) {
	previous, this := previousRelease(t), thisRelease(t)
	j := newJobs(t, "there-and-back")
	j.install(previous)
	j.create(jobsPerKind())
	j.upgrade(this)
	j.settle()
	j.finish(even)
	j.createLater()
	j.goBack(previous)
	j.settle()
	j.suspendReturned("running-101", "running-102", "running-104", "running-109")
	j.finish(even)
	j.upgrade(this)
	j.settle()
	j.finish(all)
	j.wantStuck(none)
}

// A release whose pods have one more environment variable renders all waiting jobs again, and so does this one after
// the rollback. Running jobs retain their JobSets.
func TestUpgrade_RendererDiffers(t *testing.T) {
	this, next := thisRelease(t), nextRelease(t)
	j := newJobs(t, "renderer-differs")
	j.install(this)
	j.create(jobsPerKind())
	j.upgrade(next)
	j.settle()
	j.wantRendered("by the next release", true)
	j.finish(even)
	j.rollBack(this)
	j.settle()
	j.wantRendered("by this release again", false)
	j.finish(all)
	j.wantStuck(none)
}

// Without the commands, the previous release cannot start the jobs whose JobSets a later one has replaced, since it
// renders them differently: it patches their JobSets, and JobSet refuses that. Those jobs, and no others, wait until a
// release that replaces JobSets runs.
func TestUpgrade_PreviousReleaseIsStuck(t *testing.T) {
	previous, this, next := previousRelease(t), thisRelease(t), nextRelease(t)
	j := newJobs(t, "stuck")
	j.install(previous)
	j.create(jobsPerKind())
	created := j.look().jobs
	j.upgrade(next)
	j.settle()
	j.wantRendered("by the next release", true)
	rendered := j.look().jobs
	j.finish(even)
	j.rollBack(previous)
	j.settle()
	j.finish(all)
	j.wantStuck(func(name string) bool {
		replaced := created[name].jobSet != rendered[name].jobSet
		if waits := !strings.HasPrefix(name, "running"); waits && shapeOf(name).torchRuns() && !replaced {
			t.Errorf("the next release has not rendered %s", name)
		}
		return !even(numberOf(name)) && replaced
	})
	j.upgrade(this)
	j.settle()
	j.finish(all)
	j.wantStuck(none)
}
