package runtimes

import (
	"sync"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
)

// Learner predicts run times from those of completed runs. It is safe for concurrent use. A nil Learner learns and
// predicts nothing.
type Learner struct {
	mu      sync.Mutex
	now     func() int64
	history *forecast.History
	starts  *forecast.Starts
	// waits are the predictions of waiting workloads, runs the running ones, by the ID of the entity and of the unit
	// that it becomes.
	waits map[contention.ID]prediction
	runs  map[contention.ID]*run
	// changes counts the runs that were added to the history, and the starts that were forecast.
	changes int
}

// prediction is a run time in seconds, 0 for none, and the interval in which eight in ten runs should end.
type prediction struct {
	key                forecast.Key
	usual              forecast.Usual
	seconds, low, high int64
}

// predict predicts the run time of a run that has run for so many seconds.
func (l *Learner) predict(key forecast.Key, ran int64) prediction {
	usual := l.history.Usual(key)
	p := prediction{key: key, usual: usual}
	p.seconds = usual.Quantile(forecast.EndQuantile, ran)
	p.low = usual.Quantile(forecast.LowQuantile, ran)
	p.high = usual.Quantile(forecast.HighQuantile, ran)
	return p
}

// judge counts where the time of a completed run lay, if it was predicted.
func (p prediction) judge(seconds int64) {
	outcome := metrics.PredictionWithin
	switch {
	case p.seconds == 0:
		return
	case seconds < p.low:
		outcome = metrics.PredictionBelow
	case seconds > p.high:
		outcome = metrics.PredictionAbove
	}
	metrics.Predictions.WithLabelValues(outcome).Inc()
}

// run is an attempt of a workload.
type run struct {
	prediction

	// started is the instant of its start in seconds since 1970, left that of the departure of its last member, 0
	// before it.
	started, left int64
	// succeeded says that a member has succeeded, broken that one has failed or was taken away since the last start of
	// members.
	succeeded, broken bool
}

// New returns a learner of nothing. now returns the time in seconds since 1970.
func New(now func() int64) *Learner {
	return &Learner{
		now:     now,
		history: forecast.New(),
		starts:  forecast.NewStarts(),
		waits:   make(map[contention.ID]prediction),
		runs:    make(map[contention.ID]*run),
	}
}

// Waits reports a workload without running members, and returns its predicted run time in seconds, 0 if nothing is
// predicted. The prediction is that of the first call; key is called for it only.
func (l *Learner) Waits(id contention.ID, key func() forecast.Key) int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p, known := l.waits[id]
	if !known {
		p = l.predict(key(), 0)
		l.waits[id] = p
	}
	return p.seconds
}

// Expects returns the seconds that Waits returned for a workload, or would return, without reporting a wait.
func (l *Learner) Expects(id contention.ID, key func() forecast.Key) int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, known := l.waits[id]; known {
		return p.seconds
	}
	return l.predict(key(), 0).seconds
}

// Starts reports the start of a workload that Waits was called for, or of members that join a running one.
func (l *Learner) Starts(id contention.ID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.starts.Started(string(id), l.now()) {
		l.changes++
	}
	if p, waited := l.waits[id]; waited {
		l.runs[id] = &run{prediction: p, started: l.now()}
		delete(l.waits, id)
	} else if r := l.runs[id]; r != nil {
		r.broken = false // the lost member is replaced
	}
}

// Runs returns the instant at which a unit is predicted to end, in seconds since 1970; false if nothing is predicted. A
// unit whose start was not reported started before this process did: the prediction is made at the first call, for a
// unit that has run so long already. key is called for it only.
func (l *Learner) Runs(id contention.ID, started int64, key func() forecast.Key) (int64, bool) {
	if l == nil {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.runs[id]
	if r == nil || r.left != 0 {
		r = &run{prediction: l.predict(key(), max(l.now()-started, 0)), started: started}
		l.runs[id] = r
	}
	return r.started + r.seconds, r.seconds > 0
}

// End is the way in which a member of a workload ended.
type End int

const (
	// Succeeded members have done their work.
	Succeeded End = iota
	// Failed members failed, or were evicted.
	Failed
	// Deleted members were deleted: after another one has succeeded the job ends the rest in that way, before it the
	// job is stopped.
	Deleted
)

// Ends reports how a member of a unit ended, before or after it is reported to leave.
func (l *Learner) Ends(id contention.ID, how End) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.runs[id]
	switch {
	case r == nil:
		return
	case how == Succeeded:
		r.succeeded = true
	case how == Failed, !r.succeeded:
		r.broken = true
	}
	l.conclude(id, r)
}

// Leaves reports that the last member of a unit has left.
func (l *Learner) Leaves(id contention.ID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.runs[id]; r != nil && r.left == 0 {
		r.left = l.now()
		l.conclude(id, r)
	}
}

// conclude counts a run that is complete, and drops one that cannot complete any more. Of one that is over without a
// word about its end, the word may follow.
func (l *Learner) conclude(id contention.ID, r *run) {
	if r.left == 0 || !r.succeeded && !r.broken {
		return
	}
	delete(l.runs, id)
	if r.broken {
		return
	}
	r.judge(r.left - r.started)
	l.history.Ended(r.key, r.left-r.started)
	l.changes++
}

// Forget drops the state of a workload that is deleted.
func (l *Learner) Forget(id contention.ID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts.Forget(string(id))
	delete(l.waits, id)
	delete(l.runs, id)
}
