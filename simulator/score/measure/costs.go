package measure

import (
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// Costs holds the time of accelerators that was no useful work, where placements, starts and failures cost time. The
// GPU-hours are those of the window: with the useful ones they are all that accelerators in use had.
type Costs struct {
	cost.Settings

	// MeanSlowdown is the time of training by the nominal time of the same work, 1 or more; a job counts as its
	// accelerators times its time.
	MeanSlowdown float64 `json:"mean_slowdown"`
	// Slowdown is the excess of training over that on the best placements, Startup the time before first steps.
	// Preempted and Disrupted are the nominal work that was lost since the last checkpoint.
	SlowdownGPUHours  float64 `json:"slowdown_gpu_hours"`
	StartupGPUHours   float64 `json:"startup_gpu_hours"`
	PreemptedGPUHours float64 `json:"preempted_gpu_hours"`
	DisruptedGPUHours float64 `json:"disrupted_gpu_hours"`
	// PausedGPUHours is the time that gangs held while they waited for members that replace lost ones.
	PausedGPUHours float64 `json:"paused_gpu_hours"`
	// Restarts is the number of starts of the whole run that followed an earlier one of the job, FailedNodes the number
	// of failures of nodes.
	Restarts    int `json:"restarts"`
	FailedNodes int `json:"failed_nodes"`
}

// split divides the time of a part of a run, in accelerator-seconds of the window.
type split struct {
	// startup and training divide the time; of training, slowed is the excess over its nominal time, and lost the
	// nominal work that is in no checkpoint.
	startup, training, slowed, lost float64
	// paused is the time in which lost members were missing.
	paused float64
}

// add adds up.
func (s *split) add(o split) {
	s.startup += o.startup
	s.training += o.training
	s.slowed += o.slowed
	s.lost += o.lost
	s.paused += o.paused
}

// wasted returns the part that was no useful work.
func (s *split) wasted() float64 { return s.startup + s.slowed + s.lost + s.paused }

// spent divides the run of a job until now. keeps is the part of its training that counts.
func (t *Tally) spent(job int, keeps time.Duration) split {
	j, of := &t.jobs[job], &t.scene.Jobs[job]
	if j.paused {
		return split{paused: float64(j.held) * t.window.overlap(j.since, t.now)}
	}
	pace, accelerators := j.progress.Pace, float64(of.Accelerators)
	held := accelerators
	if of.Shrinks { // Pace is the rate of all of the work with the members that it has
		held = float64(t.heldBy(job))
	}
	trains := min(j.since+time.Duration(pace.Startup)*time.Second, t.now)
	useful := float64(thousand) / float64(pace.Slowdown)
	trained := t.window.overlap(trains, t.now)
	return split{
		startup:  held * t.window.overlap(j.since, trains),
		training: held * trained,
		slowed:   held*trained - accelerators*trained*useful,
		lost:     accelerators * t.window.overlap(min(trains+keeps, t.now), t.now) * useful,
	}
}

// thousand is the unit of slowdowns.
const thousand = 1000

// forever is a training that counts however long it is.
const forever = scenario.Forever / 4

// begins notes the pace of a run.
func (t *Tally) begins(job int, nodes []int) {
	j := &t.jobs[job]
	if j.starts > 1 {
		t.restarts++
	}
	j.paused = false
	j.progress.Begin(t.scene.Pace(job, nodes, j.progress.Done), int64(t.now/time.Second))
}

// ends notes that a run ended, and whether its work is done.
func (t *Tally) ends(job int) {
	j, of := &t.jobs[job], &t.scene.Jobs[job]
	t.spend(t.spent(job, forever))
	if j.paused { // nothing trains without its members
		j.paused = false
		t.violations.Unfinished++
		return
	}
	if of.Bound == nil && of.Duration != scenario.Forever && !t.scene.Options.Costs.Off() &&
		int64(t.now/time.Second) < j.progress.Ends(int64(of.Duration/time.Second)) {
		t.violations.Unfinished++
	}
}

// breaks notes that a run ends before its time, and returns the nominal accelerator-hours that are lost.
func (t *Tally) breaks(job int, lost *float64) float64 {
	j := &t.jobs[job]
	if j.paused {
		t.spend(t.spent(job, 0))
		j.paused = false
		return 0
	}
	kept := time.Duration(j.progress.Stop(int64(t.now/time.Second))) * time.Second
	parts := t.spent(job, kept)
	t.spend(parts)
	*lost += parts.lost
	pace := j.progress.Pace
	from := min(j.since+time.Duration(pace.Startup)*time.Second+kept, t.now)
	hours := float64(t.scene.Jobs[job].Accelerators) * (t.now - from).Hours()
	return hours * (float64(thousand) / float64(pace.Slowdown))
}

// pauses takes the members of a running job off nodes that it lost; the others stay on theirs.
func (t *Tally) pauses(job int, nodes []int) {
	j, of := &t.jobs[job], &t.scene.Jobs[job]
	if j.phase != running {
		return
	}
	if j.paused {
		t.spend(t.spent(job, 0))
	} else {
		j.held = of.Accelerators
		j.disrupted++
		t.evicts(engine.Disrupted, t.breaks(job, &t.lostTo.disruption))
	}
	j.paused, j.since = true, t.now
	for rank, node := range j.holds {
		if node != nowhere && slices.Contains(nodes, int(node)) {
			demand := of.Gang.Shapes[of.Gang.Members[rank].Shape].Demand
			t.holdings.take(int(node), demand, -1)
			j.holds[rank] = nowhere
			if a := t.scene.Accelerator; a < len(demand) {
				j.held -= demand[a]
			}
		}
	}
}

// resumes lets a job train again whose lost members have joined it.
func (t *Tally) resumes(job int, nodes []int) {
	j := &t.jobs[job]
	if !j.paused || slices.Contains(j.holds, nowhere) {
		return
	}
	t.spend(t.spent(job, 0))
	j.paused, j.since = false, t.now
	t.restarts++
	j.progress.Begin(t.scene.Pace(job, nodes, j.progress.Done), int64(t.now/time.Second))
}

// spend adds a run to the sums.
func (t *Tally) spend(parts split) {
	t.use.waste(parts.wasted())
	t.split.add(parts)
}

// costs sums up, with the runs that have not ended; nil if nothing costs time.
func (t *Tally) costs(all split) *Costs {
	settings := t.scene.Options.Costs
	if settings.Off() {
		return nil
	}
	const hour = 3600
	c := Costs{
		Settings: settings, MeanSlowdown: 1, Restarts: t.restarts, FailedNodes: t.failed,
		SlowdownGPUHours: Tidy(all.slowed / hour), StartupGPUHours: Tidy(all.startup / hour),
		PreemptedGPUHours: Tidy(t.lostTo.preemption / hour), DisruptedGPUHours: Tidy(t.lostTo.disruption / hour),
		PausedGPUHours: Tidy(all.paused / hour),
	}
	if nominal := all.training - all.slowed; nominal > 0 {
		c.MeanSlowdown = Tidy(all.training / nominal)
	}
	return &c
}

// untilNow returns the split of all runs, those that have not ended included, and the part of the latter that is no
// useful work so far.
func (t *Tally) untilNow() (all split, wasted float64) {
	all = t.split
	for i := range t.jobs {
		if t.jobs[i].phase == running {
			parts := t.spent(i, forever)
			wasted += parts.wasted()
			all.add(parts)
		}
	}
	return all, wasted
}
