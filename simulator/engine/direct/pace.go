package direct

import "github.com/lockstep-project/lockstep/simulator/inputs/cost"

// pace returns the rate at which a run of a job on these nodes turns time into work.
func (p *player) pace(i int, nodes []int) cost.Pace {
	asked := &p.scene.Jobs[i]
	if p.scene.Pace == nil {
		return cost.Pace{Slowdown: nominal, Saves: asked.Saves}
	}
	done := int64(0)
	if asked.Runs != Forever {
		done = asked.Runs - p.jobs[i].left
	}
	return p.scene.Pace(i, nodes, done)
}

// nominal is the slowdown of a run that is as fast as it can be, in thousandths.
const nominal = 1000

// takes returns the time that a run of the job's remaining work takes, Forever if it does not end by itself.
func (p *player) takes(i int, pace cost.Pace) int64 {
	if left := p.jobs[i].left; left != Forever {
		return pace.Takes(left)
	}
	return Forever
}

// atMost returns the time that a run of the job's remaining work takes wherever it is, Forever if it does not end by
// itself.
func (p *player) atMost(i int) int64 {
	if p.scene.Slowest == nil {
		return p.jobs[i].left
	}
	j := &p.jobs[i]
	if j.slowest == nil {
		slowest := p.scene.Slowest(i)
		j.slowest = &slowest
	}
	return p.takes(i, *j.slowest)
}

// save notes the content of the last checkpoint of a run that ends early. One with lost members has trained nothing
// since.
func (p *player) save(r *run) {
	if j := &p.jobs[r.job]; j.left != Forever && r.lost == 0 {
		j.left -= r.pace.Work(r.pace.Saved(p.now - r.start))
	}
}
