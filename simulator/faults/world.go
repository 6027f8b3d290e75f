package faults

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
	"github.com/lockstep-project/lockstep/simulator/faults/fakecluster"
	"github.com/lockstep-project/lockstep/simulator/faults/wire"
)

// world is a scene that is being played.
type world struct {
	scene  Scene
	clock  clock.Clock
	still  func()
	ctx    context.Context //nolint:containedctx // a world lives as long as its context
	begin  time.Time
	log    io.Writer
	heard  *heard // nil without a log
	chance *chance
	agenda agenda
	gate   wire.Gate
	server *apiserver.Server
	stage  *fakecluster.Cluster
	work   *programs

	// processes are those that live, in the order of their birth; born counts them by name.
	processes []*process
	born      map[string]int
	skew      map[string]time.Duration
	// registries have the metrics of each controller.
	registries []*prometheus.Registry
	// troubled has the faults of calls that last, by process.
	troubled map[string][]Fault
	// quiet is the time at which the last of the begun faults is over, lasting the number of those that last, and
	// hindered that of those that hinder.
	quiet             time.Time
	lasting, hindered int
	// ended are the TrainJobs that were over once, by UID: some are deleted after that.
	ended map[types.UID]bool
	// bound counts the members of jobs that were bound.
	bound map[string]int
	// leader is the scheduler that decides, nil for none.
	leader     *scheduler
	schedulers []*scheduler
	// deleted are the jobs that their users delete.
	deleted map[string]bool
	checks  *invariants
	// fault is an error of the world itself.
	fault error
}

// now returns the time that the right clocks of machines show.
func (w *world) now() time.Time { return w.clock.Now() }

// since is the instant as logs have it.
func (w *world) since() time.Duration { return w.now().Sub(w.begin).Truncate(time.Millisecond) }

func (w *world) note(format string, args ...any) {
	if w.log != nil {
		w.noteAt(w.now(), fmt.Sprintf(format, args...))
	}
}

// noteAt writes a line about an instant.
func (w *world) noteAt(at time.Time, text string) {
	since := at.Sub(w.begin).Truncate(time.Millisecond)
	_, err := fmt.Fprintf(w.log, "%9s  %s\n", fmt.Sprintf("%.3f", since.Seconds()), text)
	w.must(err)
}

// must records the first error of the world.
func (w *world) must(err error) {
	if err != nil && w.fault == nil {
		w.fault = err
	}
}

func (w *world) after(d time.Duration, do func()) { w.agenda.add(w.now().Add(d), do) }

func newWorld(ctx context.Context, scene Scene, in Bubble, log io.Writer) (*world, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	w := &world{
		scene: scene, clock: in.Clock, begin: in.Clock.Now(), log: log,
		chance: newChance(scene.Seed), born: make(map[string]int), skew: make(map[string]time.Duration),
		troubled: make(map[string][]Fault), deleted: make(map[string]bool), bound: make(map[string]int),
		ended: make(map[types.UID]bool),
	}
	w.ctx = klog.NewContext(ctx, logr.Discard())
	w.still = in.Still
	if log != nil {
		w.heard = &heard{clock: in.Clock}
		w.still = func() {
			in.Still()
			for _, l := range w.heard.take() {
				w.noteAt(l.at, "log: "+l.text)
			}
		}
	}
	w.quiet = w.begin
	w.server = apiserver.New(scheme, w.now, admit)
	w.server.Changes(w.changed)
	w.work = newPrograms(w)
	w.stage = fakecluster.Start(fakecluster.World{
		NVLink: w.scene.Channels,
		Server: w.server, Now: w.now, After: w.after, Log: w.note,
		Delay: w.chance.delay,
	}, w.work)
	w.checks = newInvariants(w)
	return w, nil
}

// changed notifies watches.
func (w *world) changed(e apiserver.Event) {
	for _, p := range w.processes {
		for _, f := range p.feeds {
			f.changed(e)
		}
	}
	w.bindings(e)
	if job, ok := e.New.(*trainerv1alpha1.TrainJob); ok && job.Ended() {
		w.ended[job.UID] = true
	}
	w.tellLog(e)
}

// tellLog logs changes that matter to a reader of the log.
func (w *world) tellLog(e apiserver.Event) {
	if w.log == nil {
		return
	}
	var how string
	o := e.New
	switch {
	case e.New == nil:
		o, how = e.Old, "gone"
	case e.Old == nil:
		how = "created"
	case e.Old.GetDeletionTimestamp() == nil && o.GetDeletionTimestamp() != nil:
		how = "deleted"
	default:
		how = difference(e.Old, e.New)
	}
	if how != "" {
		w.note("%s %s %s", strings.ToLower(e.Kind), client.ObjectKeyFromObject(o), how)
	}
}

// callLag is the time that a call takes, slowly the further time of a slow one. No API server works on one for more
// than a minute.
const (
	callLag     = 3 * time.Millisecond
	slowly      = 300
	longestCall = time.Minute
)

// rest runs all processes until each of them waits for something.
func (w *world) rest() {
	for range restless {
		w.still()
		for _, c := range w.gate.Take() {
			w.send(c)
		}
		if !w.advanceOne() {
			return
		}
	}
	w.must(errRestless)
}

func (w *world) advanceOne() bool {
	for _, p := range w.processes {
		if p.advance() {
			return true
		}
	}
	return false
}

// send has a call answered later, as the troubles of its process say.
func (w *world) send(c *wire.Call) {
	var of *process
	for _, p := range w.processes {
		if p.calls == c.Process {
			of = p
		}
	}
	if of == nil {
		_ = c.End(wire.Unsent) // its process has just died
		return
	}
	w.checks.calls(c)
	outcome, lag := w.outcome(c)
	of.pending = append(of.pending, c)
	w.after(lag, func() {
		at := slices.Index(of.pending, c)
		if at < 0 {
			return // it was answered when its process died
		}
		of.pending = slices.Delete(of.pending, at, at+1)
		w.told(c, outcome, c.End(outcome))
	})
}

func (w *world) told(c *wire.Call, outcome wire.Outcome, err error) {
	switch {
	case outcome != wire.Answered:
		w.note("%s: %s", c, outcome)
	case err != nil:
		w.note("%s: %v", c, err)
	}
}

// outcome draws the outcome of a call.
func (w *world) outcome(c *wire.Call) (wire.Outcome, time.Duration) {
	words := []string{"call", c.Process.Name, string(c.Verb), c.Kind, c.Name.String()}
	lag := w.chance.delay(callLag, words...)
	outcome := wire.Answered
	for _, f := range w.troubled[c.Process.Name] {
		if w.chance.of(3, append(words, string(f.Kind), f.At.String())...) != 0 {
			continue
		}
		switch f.Kind {
		case Refuse:
			outcome = wire.Busy
		case Drop:
			outcome = wire.Unsent
		case Forget:
			if outcome = wire.Lost; c.Verb.Reads() {
				outcome = wire.Unsent
			}
		case Slow:
			lag = min(lag*slowly, longestCall)
		default:
		}
	}
	return outcome, lag
}

// kill ends a process. Each of its pending calls is carried out or not.
func (w *world) kill(p *process) {
	w.processes = slices.DeleteFunc(w.processes, func(other *process) bool { return other == p })
	p.calls.Die()
	p.stop()
	for _, c := range p.pending {
		outcome := wire.Unsent
		if w.chance.of(2, "death", c.String()) == 0 {
			outcome = wire.Lost
		}
		w.told(c, outcome, c.End(outcome))
	}
	p.pending = nil
	w.still()
}
