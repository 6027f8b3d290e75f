package progress

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// How often something is shown, in wall time.
const (
	screenEvery = 100 * time.Millisecond
	jsonEvery   = time.Second
	plainEvery  = 5 * time.Second
)

// ErrQuit is the cause of the context's end if a reader asked for it.
var ErrQuit = errors.New("ended by the reader before the end of the trace")

// Options configure the place and the form of the progress.
type Options struct {
	// Out is the output, In the input from which a screen reads keys; nil for no keys.
	Out  io.Writer
	In   io.Reader
	Form Form
	// Clock is the wall clock.
	Clock clock.WithTicker
	// Runs is the number of expected runs, at least 1.
	Runs int
	// Environment is the process's, from which a screen learns the colors of its terminal.
	Environment []string
}

// Progress shows runs, one after the other or several at once.
type Progress struct {
	clock clock.WithTicker
	form  Form
	runs  int
	// quit ends the context, over is that context's end.
	quit context.CancelCauseFunc
	over <-chan struct{}
	// stop ends the goroutine that shows, which closes stopped.
	stop, stopped chan struct{}
	closing       sync.Once
	face          face

	lock sync.Mutex
	// watched is the number of runs that have begun, active are those that are not over.
	watched int
	active  []*Run
	// resume is closed when a pause ends; nil if there is none.
	resume chan struct{}
	// ends are the views of runs that are over, and are still to be shown.
	ends []View
}

// face writes views down.
type face interface {
	// show takes the present state of runs, and those that have ended since the last time.
	show(now, ends []View)
	// close shows nothing more. It returns the error of a failed write.
	close() error
}

// Start begins to show. The context that it returns ends with the given one, or when a reader asks for it, and then has
// the cause ErrQuit; runs have to get it. Close has to be called at the end.
func Start(ctx context.Context, o Options) (context.Context, *Progress) {
	runs, quit := context.WithCancelCause(ctx)
	p := &Progress{
		clock: o.Clock, form: o.Form, runs: max(o.Runs, 1), quit: quit, over: runs.Done(),
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	every := screenEvery
	switch o.Form {
	case Screen:
		p.face = newScreen(p, o)
	case Plain:
		p.face, every = &lines{out: o.Out, write: plainLine}, plainEvery
	case JSON:
		p.face, every = &lines{out: o.Out, write: jsonLine}, jsonEvery
	default:
		close(p.stopped)
		return runs, p
	}
	go p.keepShowing(o.Clock.NewTicker(screenEvery), o.Clock.Now().Add(every), every)
	return runs, p
}

// Watch begins to show a run of a scenario. The name is shown if it is not empty: the scheduler's and the seed.
func (p *Progress) Watch(name string, s *scenario.Scenario) *Run {
	if p.face == nil {
		return &Run{}
	}
	p.lock.Lock()
	p.watched++
	number, paused := p.watched, p.resume != nil
	p.lock.Unlock()
	r := newRun(p, name, number, s)
	if paused {
		r.asked.Or(hold)
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.active = append(p.active, r)
	return r
}

// Close shows the last state, and gives the terminal back. Its error reports a failed write.
func (p *Progress) Close() error {
	p.closing.Do(func() { close(p.stop) })
	<-p.stopped
	p.quit(nil)
	if p.face == nil {
		return nil
	}
	return p.face.close()
}

// done takes a run that is over from the active ones.
func (p *Progress) done(r *Run) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if i := slices.Index(p.active, r); i >= 0 {
		p.active = slices.Delete(p.active, i, i+1)
		p.ends = append(p.ends, r.view(p.clock.Now()))
	}
}

// keepShowing asks for snapshots at each tick, and shows them from an instant on, each so often.
func (p *Progress) keepShowing(ticks clock.Ticker, next time.Time, every time.Duration) {
	defer close(p.stopped)
	defer ticks.Stop()
	for {
		select {
		case now := <-ticks.C():
			if !now.Before(next) {
				next = now.Add(every)
				p.face.show(p.views(now))
			}
			p.ask(due)
		case <-p.stop:
			if now, ends := p.views(p.clock.Now()); len(now)+len(ends) > 0 {
				p.face.show(now, ends)
			}
			return
		}
	}
}

// views returns the views of active runs, and the last views of those that are over.
func (p *Progress) views(at time.Time) (now, ends []View) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, r := range p.active {
		if p.resume != nil {
			now = append(now, r.still())
		} else {
			now = append(now, r.view(at))
		}
	}
	ends, p.ends = p.ends, nil
	return now, ends
}

// ask asks all runs for something.
func (p *Progress) ask(what uint32) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, r := range p.active {
		r.asked.Or(what)
	}
}

// toggle pauses all runs, or lets them continue.
func (p *Progress) toggle() {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.resume == nil {
		p.resume = make(chan struct{})
		for _, r := range p.active {
			r.asked.Or(hold)
		}
		return
	}
	for _, r := range p.active {
		r.asked.And(^hold)
	}
	close(p.resume)
	p.resume = nil
}

// rest waits until the pause is over, or everything is.
func (p *Progress) rest() {
	p.lock.Lock()
	resume := p.resume
	p.lock.Unlock()
	if resume == nil {
		return
	}
	select {
	case <-resume:
	case <-p.over:
	}
}

// paused reports whether runs wait for a reader.
func (p *Progress) paused() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.resume != nil
}
