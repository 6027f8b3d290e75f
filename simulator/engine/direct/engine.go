package direct

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/topology"
)

// Run plays the scene and reports events as they happen; emit may be nil. An error names the fault of the scene. A gang
// whose question cannot be asked of the fleet is no error: it waits.
func Run(scene Scene, options Options, emit func(Event)) (Result, error) {
	if err := check(scene); err != nil {
		return Result{}, err
	}
	if emit == nil {
		emit = func(Event) {}
	}
	p := newPlayer(scene, options, emit)
	for p.step() {
		p.rounds()
		p.report()
	}
	return p.result(), p.fault
}

// stopwatch measures evaluations.
type stopwatch struct {
	// wall is its clock; nil if nothing is measured.
	wall func() time.Time
	// decided receives the cost of an evaluation: the members of the gang, whether it starts, and the wall time; nil
	// with wall.
	decided func(members int, placed bool, took time.Duration)
}

// player drives a machine, or the queue of a rival, through a scene.
type player struct {
	scene     Scene
	options   Options
	emit      func(Event)
	stopwatch stopwatch
	// fault is the reason for which the scene cannot be played on.
	fault error

	// now is the current instant in whole seconds.
	now int64
	// past is the fraction of a second after now; it only orders events within that second.
	past time.Duration
	// machine is the queue that decides: the product's, or a rival's.
	machine queue
	// snap is the machine's input.
	snap contention.Snapshot
	// units are the snapshot's running units.
	units contention.Units
	// book is the current occupation of the nodes; the snapshot's ledger is its.
	book *topology.Book

	jobs    []job
	byID    map[contention.ID]int
	backlog backlog
	runs    runs
	// events are the pending events of nodes, the next one first (see nodes.go).
	events []SceneEvent
	// closed holds for each node the reasons for which nothing starts there.
	closed []closure
	// recheck is the instant that the machine named last, contention.None for none.
	recheck int64
	// idle counts the instants in a row at which nothing but a recheck happened; mostIdle bounds it.
	idle int
	// history holds the runs that ended so far; nil if nothing is learned.
	history *forecast.History
	// refused counts the jobs that did not start at the instant at which they began to wait.
	refused int

	reported reported
	tally    tally
}

// none is an index that means none.
const none = -1

func newPlayer(scene Scene, options Options, emit func(Event)) *player {
	p := &player{
		scene: scene, options: options, now: scene.Now, book: topology.NewBook(scene.Ledger),
		machine: options.queue(), jobs: make([]job, len(scene.Jobs)),
		byID: make(map[contention.ID]int, len(scene.Jobs)), recheck: contention.None, tally: newTally(scene),
		events: scene.Events, closed: make([]closure, scene.Ledger.Len()), reported: reported{kept: make(map[int]bool)},
	}
	p.emit = func(e Event) {
		e.Past = p.past
		emit(e)
	}
	p.snap = contention.Snapshot{
		Ledger: p.book.Ledger(), Running: &p.units, Accelerators: []int{scene.Accelerator}, Fleet: p.tally.all,
		Placer: product{&contention.Refusal{Short: &topology.Shortfall{}}}, Away: p.away,
	}
	if options.Learns && options.Foresight == Promised {
		p.history = forecast.New()
	}
	if options.Policy != nil {
		p.snap.Placer = p.places()
	}
	for node, closed := range scene.Closed {
		if closed {
			p.close(node, cordoned)
		}
	}
	for i := range scene.Jobs {
		p.backlog.order, p.backlog.arrivals = append(p.backlog.order, i), append(p.backlog.arrivals, i)
		p.byID[p.id(i)] = i
	}
	slices.SortStableFunc(
		p.backlog.order,
		func(a, b int) int { return scene.Jobs[a].Order.Compare(scene.Jobs[b].Order) },
	)
	for rank, i := range p.backlog.order {
		p.jobs[i].rank, p.jobs[i].order = rank, scene.Jobs[i].Order
	}
	slices.SortFunc(p.backlog.arrivals, func(a, b int) int {
		return cmp.Or(
			scene.Jobs[a].arrives().compare(scene.Jobs[b].arrives()), cmp.Compare(p.jobs[a].rank, p.jobs[b].rank))
	})
	for i, r := range scene.Running {
		p.resume(i, r)
	}
	return p
}

// id is the ID of a job's entity and of its unit.
func (p *player) id(i int) contention.ID { return contention.ID(p.scene.Jobs[i].Name) }

// resume begins the run of an initial unit.
func (p *player) resume(i int, of Running) {
	r := &run{
		job: none, index: i, number: p.runs.number, holds: of.Holds, start: of.Started, at: none, ends: Forever,
		leaves: Forever,
	}
	if of.Ends != Forever {
		r.ends = max(of.Ends, p.scene.Now)
	}
	p.runs.number++
	p.runs.begun = append(p.runs.begun, r)
	p.runs.ends.add(r)
	u := contention.Unit{
		ID: contention.ID("running/" + strconv.Itoa(i) + "/" + of.Name), Holds: p.visible(r), Started: of.Started,
		Accelerators: accelerators(of.Holds, p.scene.Accelerator), End: of.Expected, Sweep: of.Sweep,
	}
	if p.options.Foresight == Perfect {
		u.End = known(r.ends)
	}
	r.unit = &u
	p.units.Add(&u)
	p.tally.used += u.Accelerators
}

// known is the end of a unit whose end is known for certain.
func known(at int64) contention.End {
	if at == Forever {
		return contention.End{Certainty: contention.Never}
	}
	return contention.End{At: at, Certainty: contention.Certain}
}

// mostIdle bounds how often the machine is asked again in a row by time alone. A job that a closed lease refuses starts
// when the lease has spent its budget, but a place in which no accelerator is free spends none.
const mostIdle = 10_000

// step advances to the next instant at which something happens. It reports whether there is one.
func (p *player) step() bool {
	if p.fault != nil {
		return false
	}
	next := p.next()
	switch recheck := (instant{second: p.recheck}); {
	case recheck.compare(next) >= 0:
		p.idle = 0
	case next.second < Forever || p.options.Until != 0 || p.mayStart():
		next = recheck
		p.idle++
	}
	until := p.options.Until
	if next.second == Forever || until != 0 && next.second > until {
		if until != 0 {
			p.elapse(until)
		}
		return false
	}
	p.elapse(next.second)
	p.past = next.past
	p.happen()
	return true
}

// mayStart reports whether time alone may let an entity start: one that only leases refuse.
func (p *player) mayStart() bool {
	return p.idle < mostIdle && slices.ContainsFunc(p.machine.Waiting(), func(id contention.ID) bool {
		reason, _ := p.machine.Reason(id)
		return reason.Cause == contention.OtherLease
	})
}

// happen carries out the events of this instant.
func (p *player) happen() {
	var due []*run
	for p.runs.ends.first() == p.instant() {
		due = append(due, p.runs.ends.take())
	}
	for _, r := range due { // before any job begins to wait: its prediction rests on all runs that have ended
		p.learn(r)
	}
	for _, r := range due {
		if r.leaves == p.now {
			p.leave(r)
		} else {
			p.finish(r, Ended)
		}
	}
	p.partAll()
	for len(p.events) > 0 && p.events[0].At <= p.now {
		p.carryOut(p.events[0])
		p.events = p.events[1:]
	}
	for len(p.backlog.arrivals) > 0 && p.scene.Jobs[p.backlog.arrivals[0]].arrives().compare(p.instant()) <= 0 {
		p.arrive(p.backlog.arrivals[0])
		p.backlog.arrivals = p.backlog.arrivals[1:]
	}
}

// elapse lets time pass in which nothing happens.
func (p *player) elapse(until int64) {
	if until > p.now {
		p.tally.elapse(until-p.now, p.backlog.waiting)
		p.now = until
	}
	p.snap.Now = p.now
}

// mostTurns bounds the evaluations at an instant, for each entity that waits.
const mostTurns = 1000

var errRest = errors.New("the machine does not come to rest")

// rounds evaluates entities until the machine comes to rest.
func (p *player) rounds() {
	if p.backlog.queued == 0 {
		p.recheck = contention.None
		return
	}
	p.act(p.machine.Pass(p.now))
	settled := false
	for turns := 0; p.fault == nil; turns++ {
		id, ok := p.machine.Next()
		switch {
		case ok:
			settled = false
			p.turn(id)
		case settled:
			return
		default:
			settled, p.recheck = true, contention.None
			p.act(p.machine.Settle(&p.snap))
		}
		if turns > mostTurns*(p.backlog.queued+mostTurns) {
			p.fault = errRest
		}
	}
}

// turn has an entity evaluated.
func (p *player) turn(id contention.ID) {
	if i := p.byID[id]; p.jobs[i].surplus { // its run time gets shorter
		p.machine.Add(p.surplus(i))
	}
	p.tally.decisions++
	if p.stopwatch.decided == nil {
		p.act(p.machine.Turn(id, &p.snap))
		return
	}
	begin := p.stopwatch.wall()
	actions := p.machine.Turn(id, &p.snap)
	took := p.stopwatch.wall().Sub(begin)
	placed := slices.ContainsFunc(actions, func(a contention.Action) bool { _, ok := a.(contention.Placed); return ok })
	p.stopwatch.decided(len(p.scene.Jobs[p.byID[id]].Gang.Members), placed, took)
	p.act(actions)
}

// act carries out the machine's actions.
func (p *player) act(actions []contention.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case contention.Placed:
			p.start(a)
		case contention.Preempted:
			p.preemptAll(a.Victims)
		case contention.Leased:
			p.reported.leased = true
		case contention.Released:
			p.reported.leased = true
		case contention.Rechecks:
			p.recheck = a.At
		case contention.Waits, contention.Evicted: // nothing to do: members start at once
		}
	}
}
