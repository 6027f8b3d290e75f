package direct

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/topology"
)

// Run plays the scene and tells what happens as it happens; emit may be nil. The error says what is wrong with the scene. A
// gang that asks for what cannot be is no error: it waits.
func Run(scene Scene, options Options, emit func(Event)) (Result, error) {
	if err := check(scene); err != nil {
		return Result{}, err
	}
	if emit == nil {
		emit = func(Event) {}
	}
	e := newPlayer(scene, options, emit)
	for e.fault == nil && e.step() {
		e.examine()
	}
	return e.result(), e.fault
}

// decided is told what a question cost: how many members it was about, whether it was answered with yes, and how long it took.
type decided func(members int, placed bool, took time.Duration)

// player is a scene while it is played.
type player struct {
	scene   Scene
	options Options
	emit    func(Event)
	// wall and decided measure what decisions cost; nil if nobody wants to know.
	wall    func() time.Time
	decided decided
	// fault is why the scene cannot be played on.
	fault error

	now int64
	// book is what is free, ledger the same for those who decide.
	book   *topology.Book
	ledger topology.Ledger
	jobs   []job
	// order are the jobs in the queue's order, arrivals those that are to come, the next one first.
	order, arrivals []int
	// events are what is still to happen to nodes, closed the nodes that take nothing (see nodes.go).
	events []NodeEvent
	closed []closure
	queue  queue
	// came are the ranks of those that came, or came back, at this instant.
	came []int
	head head
	// changed is set if all that wait have to be asked again.
	changed bool

	ends ends
	// runs is what runs, in the order of the starts, with some that are gone; see live. alive are as many as run.
	runs  []*run
	alive int
	// leaving is what runs in the order of the expected ends, running the same for the core.
	leaving []*run
	running []topology.Running
	number  int

	tally tally
}

// job is a job of the scene that waits, runs or is over.
type job struct {
	rank int
	lane *lane
	// since is when it began to wait, left how long it still has to run.
	since, left int64
	waits       bool
}

// run is what runs.
type run struct {
	// job is -1 for what ran from the beginning; of that, index is where the scene has it.
	job, index int
	number     int
	holds      []topology.Held
	takes      int64
	start      int64
	// ends is when it ends, expected when those who decide think so.
	ends, expected int64
	// at is where it is among the ends, gone is set when it is over.
	at   int
	gone bool
}

func newPlayer(scene Scene, options Options, emit func(Event)) *player {
	e := &player{
		scene: scene, options: options, emit: emit, now: scene.Now, book: topology.NewBook(scene.Ledger),
		jobs: make([]job, len(scene.Jobs)), head: head{job: nobody}, changed: true, tally: newTally(scene),
		events: scene.Events, closed: make([]closure, scene.Ledger.Len()),
	}
	e.options.Preempt = options.Preempt && options.Policy == nil
	e.ledger = e.book.Ledger()
	for node, closed := range scene.Closed {
		if closed {
			e.close(node, cordoned)
		}
	}
	for i := range scene.Jobs {
		e.order, e.arrivals = append(e.order, i), append(e.arrivals, i)
	}
	slices.SortStableFunc(e.order, func(a, b int) int { return scene.Jobs[a].Order.Compare(scene.Jobs[b].Order) })
	for rank, i := range e.order {
		e.jobs[i].rank = rank
	}
	slices.SortFunc(e.arrivals, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(scene.Jobs[a].Arrives, scene.Jobs[b].Arrives), cmp.Compare(e.jobs[a].rank, e.jobs[b].rank))
	})
	for i, r := range scene.Running {
		e.begin(&run{
			job: nobody, index: i, holds: r.Holds, takes: accelerators(r.Holds, scene.Accelerator),
			start: scene.Now, ends: endOf(scene, i), expected: e.expects(i),
		})
	}
	return e
}

// nobody is an index that means none.
const nobody = -1

// endOf is when what ran from the beginning ends.
func endOf(scene Scene, i int) int64 {
	end := scene.Running[i].End
	if scene.RunningEnds != nil {
		end = scene.RunningEnds[i]
	}
	if end >= decision.Someday {
		return Forever
	}
	return max(end, scene.Now)
}

// expects is when those who decide think that what ran from the beginning ends.
func (e *player) expects(i int) int64 {
	if e.options.Foresight != Perfect {
		return e.scene.Running[i].End
	}
	if end := endOf(e.scene, i); end != Forever {
		return end
	}
	return topology.EndUnknown
}

// step goes on to the next instant at which something happens. It reports whether there is one.
func (e *player) step() bool {
	next := e.ends.first()
	if len(e.events) > 0 {
		next = min(next, max(e.events[0].At, e.scene.Now))
	}
	if len(e.arrivals) > 0 {
		next = min(next, max(e.scene.Jobs[e.arrivals[0]].Arrives, e.scene.Now))
	}
	until := e.options.Until
	if next == Forever || until != 0 && next > until {
		if until != 0 {
			e.elapse(until)
		}
		return false
	}
	e.elapse(next)
	for e.ends.first() == e.now {
		e.finish(e.ends.take(), Ended)
	}
	for len(e.events) > 0 && e.events[0].At <= e.now {
		e.happen(e.events[0])
		e.events = e.events[1:]
	}
	for len(e.arrivals) > 0 && e.scene.Jobs[e.arrivals[0]].Arrives <= e.now {
		e.arrive(e.arrivals[0])
		e.arrivals = e.arrivals[1:]
	}
	return true
}

// elapse lets time go by in which nothing happens.
func (e *player) elapse(until int64) {
	if until > e.now {
		e.tally.elapse(until-e.now, e.queue.size)
		e.now = until
	}
}

func (e *player) arrive(i int) {
	asked := &e.scene.Jobs[i]
	j := &e.jobs[i]
	j.since, j.left, j.lane = asked.Arrives, asked.Runs, e.queue.lane(questionOf(asked.Gang, asked.Needed))
	e.emit(Event{At: e.now, Kind: Arrived, Job: i, Name: asked.Name})
	e.wait(i)
}

// wait puts a job into the queue.
func (e *player) wait(i int) {
	j := &e.jobs[i]
	j.waits = true
	e.queue.add(j.lane, spot{j.rank, e.promise(i)})
	e.came = append(e.came, j.rank)
	if e.leads(j.rank) {
		e.changed = true
	}
}

// leads reports whether a gang that comes can change who is first: the place is its own then, or it may preempt although
// others with its question could not.
func (e *player) leads(rank int) bool {
	if e.head.job == nobody {
		return e.options.Preempt
	}
	return rank < e.jobs[e.head.job].rank
}

// promise is how long the job runs at most, as far as those who decide know.
func (e *player) promise(i int) int64 {
	promises := e.scene.Jobs[i].Promises
	if e.options.Foresight == Perfect {
		promises = max(min(e.jobs[i].left, unknown), 1)
	}
	if promises == 0 {
		return unknown
	}
	return promises
}

// later is an instant some time from now; never is the answer for what never comes.
func (e *player) later(after, never int64) int64 {
	if after >= unknown-max(e.now, 0) {
		return never
	}
	return e.now + after
}

// start lets the gang that is asked run where it was placed.
func (e *player) start(i int, gang topology.Gang, p topology.Placement) {
	asked, j := &e.scene.Jobs[i], &e.jobs[i]
	if front := e.queue.front(); front < j.rank {
		e.tally.jobs[e.order[front]].Bypassed++
	}
	e.queue.take(j.lane)
	j.waits = false
	e.tally.start(i, e.now, e.now-j.since)
	r := &run{
		job: i, index: nobody, takes: asked.Accelerators, start: e.now,
		ends: e.later(j.left, Forever), expected: e.later(e.promise(i), decision.Someday),
	}
	for rank, node := range p.Nodes {
		if m := gang.Members[rank]; !m.Placed {
			held := topology.Held{Node: node, Demand: gang.Shapes[m.Shape].Demand}
			r.holds = append(r.holds, held)
			e.add(held, -1)
		}
	}
	e.begin(r)
	e.emit(Event{At: e.now, Kind: Started, Job: i, Name: asked.Name, Placement: p})
}

// begin counts among what runs.
func (e *player) begin(r *run) {
	r.number, e.head.fresh = e.number, false
	e.number++
	e.runs = append(e.runs, r)
	e.alive++
	at, _ := e.leaves(r)
	e.leaving = slices.Insert(e.leaving, at, r)
	e.running = slices.Insert(e.running, at, e.seen(r))
	e.ends.add(r)
	e.tally.used += r.takes
}

// leaves finds a run among what runs by its expected end, and reports whether it is there.
func (e *player) leaves(r *run) (int, bool) {
	return slices.BinarySearchFunc(e.leaving, r, func(a, b *run) int {
		return cmp.Or(cmp.Compare(a.expected, b.expected), cmp.Compare(a.number, b.number))
	})
}

// seen is what those who decide see of a run.
func (e *player) seen(r *run) topology.Running {
	if r.job == nobody {
		return topology.Running{Name: e.scene.Running[r.index].Name, Holds: e.visible(r), End: r.expected}
	}
	return topology.Running{Name: e.scene.Jobs[r.job].Name, Holds: r.holds, End: r.expected}
}

// live is what runs, in the order of the starts.
func (e *player) live() []*run {
	e.runs = slices.DeleteFunc(e.runs, func(r *run) bool { return r.gone })
	return e.runs
}

// finish takes a run away that ended, or was ended.
func (e *player) finish(r *run, kind Kind) {
	for _, held := range r.holds {
		e.add(held, 1)
	}
	r.gone, e.changed, e.head.fresh = true, true, false
	if e.alive--; len(e.runs) > 2*e.alive+64 {
		e.live()
	}
	switch at, ok := e.leaves(r); {
	case ok && at == 0: // as most often: the rest need not move
		e.leaving, e.running = e.leaving[1:], e.running[1:]
	case ok:
		e.leaving, e.running = slices.Delete(e.leaving, at, at+1), slices.Delete(e.running, at, at+1)
	}
	e.tally.used -= r.takes
	event := Event{At: e.now, Kind: kind, Job: r.job, Running: r.index}
	if r.job == nobody {
		event.Name = e.scene.Running[r.index].Name
	} else {
		event.Name = e.scene.Jobs[r.job].Name
		if kind == Ended {
			e.tally.jobs[r.job].Ended = e.now
		}
	}
	e.emit(event)
}

// add changes what is free on a node.
func (e *player) add(held topology.Held, sign int64) {
	c := &e.closed[held.Node]
	switch {
	case c.why != 0:
		for len(c.free) < len(held.Demand) {
			c.free = append(c.free, 0)
		}
		for resource, amount := range held.Demand {
			c.free[resource] += sign * amount
		}
	case sign < 0:
		e.book.Take(held.Node, held.Demand)
	default:
		e.book.Give(held.Node, held.Demand)
	}
}
