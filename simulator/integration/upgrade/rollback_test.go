package upgrade_test

import (
	"testing"
)

// Of 300 jobs, a third queued, a third suspended by its owner and a third running, all complete when this release replaces the previous one
// and is rolled back, and no running pod is touched.
func TestUpgrade_ThereAndBack(t *testing.T) {
	previous, this := previousRelease(t), thisRelease(t)
	j := newJobs(t, "there-and-back")
	j.install(previous)
	j.create()
	j.install(this)
	j.settle()
	j.finish(even)
	j.rollBack(previous)
	j.settle()
	j.finish(all)
	j.wantStuck(0)
}

// A release whose pods have one more environment variable renders all waiting jobs again, and so does this one after the rollback. Running
// jobs keep the JobSets that they have.
func TestUpgrade_RendererDiffers(t *testing.T) {
	this, next := thisRelease(t), nextRelease(t)
	j := newJobs(t, "renderer-differs")
	j.install(this)
	j.create()
	j.install(next)
	j.settle()
	j.wantRendered("by the next release", true)
	j.finish(even)
	j.rollBack(this)
	j.settle()
	j.wantRendered("by this release again", false)
	j.finish(all)
	j.wantStuck(0)
}

// The previous release cannot start the jobs that a later one has rendered: it patches their JobSets, and JobSet refuses that. Those jobs, and
// no others, wait until a release that replaces JobSets runs.
func TestUpgrade_PreviousReleaseIsStuck(t *testing.T) {
	previous, this, next := previousRelease(t), thisRelease(t), nextRelease(t)
	j := newJobs(t, "stuck")
	j.install(previous)
	j.create()
	j.install(next)
	j.settle()
	j.wantRendered("by the next release", true)
	j.finish(even)
	j.rollBack(previous)
	j.settle()
	j.finish(all)
	j.wantStuck(jobsPerKind()) // half of the queued ones and half of the suspended ones
	j.install(this)
	j.settle()
	j.finish(all)
	j.wantStuck(0)
}
