package cost

import "github.com/lockstep-project/lockstep/topology"

// Work is a model's data of a job.
type Work struct {
	Gang *topology.Gang
	// Least is the number of first members with which a run may begin.
	Least int
	// Share is the part of an iteration that is communication, in thousandths (Model.Share).
	Share int64
	// Saves is the time between two checkpoints in seconds of training, 0 for none.
	Saves int64
	// Accelerators are those of all members.
	Accelerators int64
	// Done is the nominal run time that is saved when the run begins, in seconds.
	Done int64
	// Scales has the work take longer with fewer members than all: half of them take twice as long.
	Scales bool
}

// Pace turns the time of a run into work.
type Pace struct {
	// Startup is the time before the first step, in seconds.
	Startup int64
	// Slowdown is the time that a nominal second takes, in thousandths of a second.
	Slowdown int64
	// Saves is the time between two checkpoints in seconds of training, 0 for none.
	Saves int64
}

// Pace returns that of a run on nodes by rank, as in Slowdown. It holds for the whole run, also when members join an
// elastic gang whose work does not scale.
func (m *Model) Pace(w Work, nodes []int) Pace {
	p := Pace{Startup: m.Assembly(len(nodes)), Slowdown: m.Slowdown(w.Gang, nodes, w.Share), Saves: w.Saves}
	if w.Done > 0 {
		p.Startup += m.Reload(w.Accelerators)
	}
	if w.Scales {
		p.Slowdown = p.Slowdown * int64(len(w.Gang.Members)) / max(ranks(nodes), 1)
	}
	return p
}

// ranks counts the nodes of ranks that run.
func ranks(nodes []int) int64 {
	n := int64(0)
	for _, node := range nodes {
		if node >= 0 {
			n++
		}
	}
	return n
}

// Slowest returns the pace of the slowest run, on any nodes.
func (m *Model) Slowest(w Work) Pace {
	p := Pace{
		Startup: m.Assembly(len(w.Gang.Members)), Slowdown: m.Greatest(w.Gang, w.Least, w.Share), Saves: w.Saves,
	}
	if w.Done > 0 || w.Saves > 0 {
		p.Startup += m.Reload(w.Accelerators)
	}
	if w.Scales && w.Least > 0 {
		p.Slowdown = (p.Slowdown*int64(len(w.Gang.Members)) + int64(w.Least) - 1) / int64(w.Least)
	}
	return p
}

// Takes returns the time in whole seconds that a run needs for so many nominal seconds of work.
func (p Pace) Takes(work int64) int64 { return p.Startup + scale(work, p.Slowdown) }

// Trained returns the training time in seconds of a run that began so many seconds ago.
func (p Pace) Trained(ran int64) int64 { return max(ran-p.Startup, 0) }

// Saved returns the training, in seconds, that the last checkpoint of a run contains if the run ends early after ran
// seconds.
func (p Pace) Saved(ran int64) int64 {
	if p.Saves <= 0 {
		return 0
	}
	return p.Trained(ran) / p.Saves * p.Saves
}

// Work returns the nominal seconds of work in so many seconds of training.
func (p Pace) Work(trained int64) int64 { return trained * thousand / p.Slowdown }

// Progress is the work that a job has done, over several runs. The zero value is a job that has not begun.
type Progress struct {
	// Done is the nominal work that is saved, in seconds.
	Done int64
	// Pace and Began are those of the run, or of the last one: Began in seconds.
	Pace  Pace
	Began int64
}

// Begin notes that a run begins.
func (p *Progress) Begin(pace Pace, now int64) { p.Pace, p.Began = pace, now }

// Ends returns when a run that began ends by itself if all of the job's work takes so many nominal seconds.
func (p *Progress) Ends(work int64) int64 { return p.Began + p.Pace.Takes(max(work-p.Done, 0)) }

// Stop notes that the run ends early, and adds the work in its last checkpoint. It returns the saved training in
// seconds.
func (p *Progress) Stop(now int64) int64 {
	kept := p.Pace.Saved(now - p.Began)
	p.Done += p.Pace.Work(kept)
	return kept
}
