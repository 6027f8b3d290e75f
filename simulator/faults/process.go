package faults

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/simulator/engine/clock"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
	"github.com/lockstep-project/lockstep/simulator/faults/wire"
)

// The names of the processes.
const (
	schedulerName  = "scheduler"
	controllerName = "controller"
	jobsetName     = "jobset"
)

// process is a program under test: its calls, its caches, its clock, and its work.
type process struct {
	world *world
	// name identifies it; the next one has the same.
	name  string
	calls *wire.Process
	clock *clock.Clock
	ctx   context.Context //nolint:containedctx // a process lives as long as its context
	stop  context.CancelFunc
	feeds []*feed

	// tasks are done in order: callbacks of its clock, deliveries of its watches, and cycles of a scheduler. busy is
	// set while one of them waits for an answer.
	tasks []func()
	busy  *atomic.Bool
	// pending are the calls without an answer, in the order in which they were made.
	pending []*wire.Call
	// next returns the next work for now; false if there is none.
	next func() bool
}

func (w *world) newProcess(name string) *process {
	w.born[name]++
	calls := w.gate.Process(name)
	ctx, stop := context.WithCancel(w.ctx)
	if w.heard != nil {
		ctx = klog.NewContext(ctx, logr.New(ear{of: w.heard, process: calls}))
	}
	return &process{
		world: w,
		name:  name,
		calls: calls,
		clock: clock.New(w.now().Add(w.skew[name])),
		ctx:   ctx,
		stop:  stop,
		busy:  &atomic.Bool{},
		next:  func() bool { return false },
	}
}

// step has something done in a goroutine until that is over or waits for an answer.
func (p *process) step(do func()) {
	go do()
	p.world.still()
}

// soon adds a task of the process.
func (p *process) soon(do func()) { p.tasks = append(p.tasks, do) }

// advance does the next thing; false if there is nothing.
func (p *process) advance() bool {
	if !p.busy.Load() && len(p.tasks) > 0 {
		do := p.tasks[0]
		p.tasks = p.tasks[1:]
		p.busy.Store(true)
		p.step(func() {
			defer p.busy.Store(false)
			do()
		})
		return true
	}
	return p.next()
}

// tick moves the process's clock to now.
func (p *process) tick() {
	to := p.world.now().Add(p.world.skew[p.name])
	if !p.clock.Due(to) {
		p.clock.Advance(to) // it only shows another time
		return
	}
	p.soon(func() { p.clock.Advance(to) })
}

// feed is a watch of a process.
type feed struct {
	process *process
	kind    string
	into    *stepped.Informer
	wants   func(client.Object) bool
	// told is called after each change.
	told func(old, now client.Object)
	// seen is the last delivered version. last is the time at which the latest change arrives.
	seen int64
	last time.Time
	// cut is set while the watch delivers nothing.
	cut bool
}

// watch fills an informer, and delivers changes to it from now on.
func (p *process) watch(
	kind string, into *stepped.Informer, wants func(client.Object) bool, told func(old, now client.Object),
) error {
	f := &feed{process: p, kind: kind, into: into, wants: wants, told: told, seen: p.world.server.Version()}
	p.feeds = append(p.feeds, f)
	list := f.list()
	if err := into.Fill(list); err != nil {
		return err
	}
	for _, o := range list {
		if o, ok := o.(client.Object); ok {
			f.told(nil, o)
		}
	}
	return nil
}

func (f *feed) list() []stepped.Object {
	var list []stepped.Object
	for _, o := range f.process.world.server.List(f.kind, "") {
		if f.wants(o) {
			list = append(list, o)
		}
	}
	return list
}

// watchLag is the delay of a change on a watch.
const watchLag = 5 * time.Millisecond

// changed schedules the delivery of a change, after those before it.
func (f *feed) changed(e apiserver.Event) {
	if f.kind != e.Kind || f.cut {
		return
	}
	w := f.process.world
	at := w.now().Add(w.chance.delay(watchLag, "watch", f.process.name, f.kind))
	if at.Before(f.last) {
		at = f.last
	}
	f.last = at
	w.agenda.add(at, func() { f.process.soon(func() { f.tell(e) }) })
}

// tell delivers a change, unless it was delivered or the watch is cut.
func (f *feed) tell(e apiserver.Event) {
	if f.cut || e.Version <= f.seen {
		return
	}
	f.seen = e.Version
	f.process.world.must(f.deliver(e))
}

func (f *feed) deliver(e apiserver.Event) error {
	was := e.Old != nil && f.wants(e.Old)
	if e.New != nil && f.wants(e.New) {
		old, _ := stepped.Get[client.Object](f.into, client.ObjectKeyFromObject(e.New))
		if err := f.into.Set(e.New); err != nil {
			return err
		}
		f.told(old, e.New)
		return nil
	}
	if !was {
		return nil
	}
	last := e.Old
	if e.New != nil {
		last = e.New
	}
	if err := f.into.Remove(last); err != nil {
		return err
	}
	f.told(last, nil)
	return nil
}

// resume continues after a cut: with the missed changes, or with a list.
func (f *feed) resume() {
	f.cut = false
	w := f.process.world
	missed, whole := w.server.Since(f.kind, f.seen)
	if whole {
		for _, e := range missed {
			f.tell(e)
		}
		return
	}
	f.seen = w.server.Version()
	before := f.into.Objects()
	list := f.list()
	w.must(f.into.Replace(list))
	for _, o := range before {
		if old, ok := o.(client.Object); ok {
			f.told(old, nil)
		}
	}
	for _, o := range list {
		if now, ok := o.(client.Object); ok {
			f.told(nil, now)
		}
	}
}

// all wants every object.
func all(client.Object) bool { return true }
