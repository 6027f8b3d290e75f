package progress

import (
	"sync/atomic"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// The requests to a run, in its word of memory.
const (
	// due asks for a snapshot.
	due uint32 = 1 << iota
	// hold asks to wait.
	hold
)

// Run watches one run. Happens, Decides and Done belong to the engine's goroutine.
type Run struct {
	shown  *Progress
	counts *counts
	// asked is due, hold, both or nothing.
	asked atomic.Uint32
	// latest is the mailbox.
	latest atomic.Pointer[Snapshot]

	name   string
	number int
	// began is the beginning of the run, rested the time that it has waited since for a reader.
	began  time.Time
	rested time.Duration
	// pace belongs to the goroutine that draws.
	pace pace
}

var _ engine.Watcher = (*Run)(nil)

func newRun(shown *Progress, name string, number int, s *scenario.Scenario) *Run {
	r := &Run{shown: shown, counts: newCounts(s), name: name, number: number, began: shown.clock.Now()}
	r.leave(false)
	return r
}

// Happens counts an event.
func (r *Run) Happens(e engine.Event) {
	if r.counts == nil {
		return
	}
	if asked := r.asked.Load(); asked != 0 {
		r.attend(asked)
	}
	r.counts.apply(e)
}

// Decides counts a decision.
func (r *Run) Decides(d engine.Decision) {
	if r.counts != nil {
		r.counts.took.add(d.Took)
	}
}

// attend carries out the requests.
func (r *Run) attend(asked uint32) {
	began := r.shown.clock.Now()
	r.asked.And(^due)
	r.leave(false)
	if asked&hold != 0 {
		r.shown.rest()
		r.rested += r.shown.clock.Since(began)
		r.leave(false)
	}
}

// Done notes that the run is over, whether complete or not.
func (r *Run) Done() {
	if r.counts != nil {
		r.leave(true)
		r.shown.done(r)
	}
}

// leave puts a snapshot into the mailbox.
func (r *Run) leave(over bool) {
	s := r.counts.snapshot()
	s.Name, s.Number, s.Runs, s.Over = r.name, r.number, max(r.shown.runs, r.number), over
	s.taken = r.shown.clock.Now()
	s.Wall = s.taken.Sub(r.began) - r.rested
	r.latest.Store(&s)
}

// view returns the state of the run at an instant, if it did not stand still since the last snapshot.
func (r *Run) view(at time.Time) View {
	v := View{Snapshot: *r.latest.Load()}
	if !v.Over {
		v.Wall += max(at.Sub(v.taken), 0)
	}
	v.rates = r.pace.at(&v.Snapshot, v.Wall)
	return v
}

// still returns the state of the run while it rests.
func (r *Run) still() View {
	v := r.view(r.latest.Load().taken)
	v.Paused = true
	return v
}
