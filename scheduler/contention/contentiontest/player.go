package contentiontest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// Player drives a machine through a scene in virtual time.
type Player struct {
	scene    Scene
	machine  *contention.Machine
	policy   contention.Policy
	book     *topology.Book
	now      int64
	jobs     map[string]*job
	alive    map[string]*job
	arrivals []*job
	events   []Event
	running  contention.Units
	// away are the nodes that cannot be used, since when, and their free capacity.
	away map[int]absence
	// recheck is the instant that the machine named last.
	recheck int64
	// Log lists the events as lines.
	Log []string
	// Moves lists starts, ends and leases in the order in which they happened.
	Moves []Move
	// leased are the closed leases of waiting jobs as they were noted last, by owner.
	leased map[string]leased
	// Turns counts the evaluations.
	Turns int
	// meter measures the GPUs in use.
	meter meter
	// rounded counts the rounds.
	rounded int
	fault   error
}

type absence struct {
	since int64
	free  topology.Capacity
}

// job is a job of the scene as it is played.
type job struct {
	Job
	// since is the time at which it became ready, left the remaining run time.
	since, left int64
	// due is the time at which the machine has it due, the zero time for since.
	due time.Time
	// nodes are those of the running members, by rank; -1 for a member that waits.
	nodes []int
	// parting are the ranks that leave alone, and when.
	parting map[int]int64
	// ends is the instant at which it ends by itself, evicted that at which it leaves after an eviction.
	ends, evicted  int64
	started, first int64
	// resumed is the instant at which an elastic job last resumed from a checkpoint.
	resumed      int64
	unknown      bool
	waits, whole bool
	waited       int64
	runs         bool
}

// mostTurns bounds the evaluations at one instant: a machine that needs more never settles.
const mostTurns = 20_000

// NewPlayer returns a player of the scene.
func NewPlayer(scene Scene, policy contention.Policy) (*Player, error) {
	ledger, err := scene.ledger()
	if err != nil {
		return nil, err
	}
	p := &Player{
		scene:   scene,
		machine: contention.New(policy),
		policy:  policy,
		book:    topology.NewBook(ledger),
		now:     -1,
		jobs: make(
			map[string]*job,
		),
		alive:   make(map[string]*job),
		events:  slices.Clone(scene.Events),
		away:    make(map[int]absence),
		recheck: contention.None,
	}
	slices.SortStableFunc(p.events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	for _, of := range scene.Jobs {
		if p.jobs[of.Name] != nil {
			return nil, fmt.Errorf("job %s: there is another one of that name", of.Name)
		}
		j := &job{Job: of, since: of.Arrives, left: of.Runs, ends: contention.None, evicted: contention.None, first: -1}
		j.nodes = slices.Repeat([]int{-1}, of.Members)
		p.jobs[of.Name] = j
		if of.On == nil {
			p.arrivals = append(p.arrivals, j)
			continue
		}
		if len(of.On) > of.Members {
			return nil, fmt.Errorf("job %s: it runs on %d nodes with %d members", of.Name, len(of.On), of.Members)
		}
		p.begin(j, of.On, of.Arrives)
	}
	slices.SortStableFunc(p.arrivals, func(a, b *job) int { return cmp.Compare(a.Arrives, b.Arrives) })
	for _, j := range p.sorted(func(j *job) bool { return j.alive() < j.Members }) { // the surplus waits in its own place
		p.queue(j)
	}
	return p, nil
}

// Play plays until the instant.
func (p *Player) Play(until int64) error {
	for again := 0; p.fault == nil; again++ {
		next := p.next()
		if next > until {
			break
		}
		if next > p.now {
			again = 0
		}
		if again > mostTurns {
			p.fault = errors.New("time does not pass at " + Clock(p.now))
			break
		}
		p.elapse(next)
		p.happen()
		p.rounds()
		p.noteLeases()
	}
	if p.fault == nil {
		p.elapse(until)
	}
	return p.fault
}

// next returns the next instant at which something happens.
func (p *Player) next() int64 {
	next := p.recheck
	for _, j := range p.alive {
		next = min(next, j.ends, j.evicted, j.firstParting())
	}
	if len(p.arrivals) > 0 {
		next = min(next, p.arrivals[0].Arrives)
	}
	if len(p.events) > 0 {
		next = min(next, p.events[0].At)
	}
	return max(next, p.now)
}

// happen carries out the ends, events and arrivals of this instant.
func (p *Player) happen() {
	if p.recheck <= p.now {
		p.recheck = contention.None
	}
	for _, j := range p.sorted(func(j *job) bool { return j.evicted <= p.now }) {
		p.leave(j)
	}
	for _, j := range p.sorted(func(j *job) bool { return j.firstParting() <= p.now }) {
		p.shrink(j)
	}
	for _, j := range p.sorted(func(j *job) bool { return j.ends <= p.now }) {
		p.finish(j)
	}
	for len(p.events) > 0 && p.events[0].At <= p.now {
		p.carryOut(p.events[0])
		p.events = p.events[1:]
	}
	for len(p.arrivals) > 0 && p.arrivals[0].Arrives <= p.now {
		p.queue(p.arrivals[0])
		p.arrivals = p.arrivals[1:]
	}
}

func (p *Player) sorted(meant func(*job) bool) []*job {
	var out []*job
	for _, j := range p.alive {
		if meant(j) {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *job) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (p *Player) logf(format string, args ...any) {
	p.Log = append(p.Log, Clock(p.now)+" "+fmt.Sprintf(format, args...))
}

// rounds evaluates entities until the machine has none left to evaluate.
func (p *Player) rounds() {
	for _, a := range p.machine.Pass(p.now) {
		p.act(a)
	}
	for turns := 0; ; turns++ {
		if turns > mostTurns {
			p.fault = errors.New("the machine does not come to rest at " + Clock(p.now))
			return
		}
		id, ok := p.machine.Next()
		if !ok {
			p.recheck = contention.None // it names the next one anew
			for _, a := range p.machine.Settle(p.snapshot()) {
				p.act(a)
			}
			if _, more := p.machine.Next(); !more {
				break
			}
			continue
		}
		p.Turns++
		if j := p.jobs[string(id)]; j.runs { // its run time gets shorter
			p.add(j)
		}
		for _, a := range p.machine.Observe(p.snapshot()) {
			p.act(a)
		}
		before := p.leases()
		actions := p.machine.Turn(id, p.snapshot())
		p.checkTurn(before, actions)
		for _, a := range actions {
			p.act(a)
		}
		if p.fault != nil {
			return
		}
	}
	p.checkRound()
}

// snapshot returns the values that an evaluation reads.
func (p *Player) snapshot() *contention.Snapshot {
	return &contention.Snapshot{
		Now: p.now, Ledger: p.book.Ledger(), Running: &p.running, Accelerators: []int{0}, Fleet: p.fleet(),
		Away: func(node int) (int64, bool) {
			a, ok := p.away[node]
			return a.since, ok
		},
	}
}

func (p *Player) fleet() int64 { return int64(p.scene.Cliques * p.scene.Nodes * p.scene.GPUs) }

// act carries out an action of the machine.
func (p *Player) act(a contention.Action) {
	switch a := a.(type) {
	case contention.Placed:
		p.start(a)
	case contention.Preempted:
		p.logf("%s preempts %s%s", a.ID, join(a.Victims), p.weighed(a))
		p.evictAll(a.Victims)
	case contention.Leased:
		p.logf("%s", describe(a.Lease))
	case contention.Released:
		if a.Why != contention.WhyStarted && a.Why != contention.WhyPreempts {
			p.logf("%s releases its lease: %s", a.Lease.Owner, a.Why)
		}
	case contention.Evicted:
		p.logf("%s is evicted: its start makes no progress", a.ID)
		p.evict(p.jobs[string(a.ID)])
	case contention.Rechecks:
		p.recheck = a.At
	case contention.Waits:
	}
}

// add makes a job wait, and notes when it is due.
func (p *Player) add(j *job) {
	e := j.entity(p.now)
	p.machine.Add(e)
	of, _ := p.machine.OrderOf(e.ID)
	j.due = of.Due
}

// order is the place of a job in the queue.
func (j *job) order() contention.Order {
	return contention.Order{
		Priority:    j.Priority,
		Since:       time.Unix(j.since, 0).UTC(),
		Due:         j.due,
		Name:        j.Name,
		Replacement: j.whole && j.runs && !j.elasticOnly(),
		Grows:       j.Elastic && j.runs && j.elasticOnly(),
	}
}

// elasticOnly reports whether as many members run as have to.
func (j *job) elasticOnly() bool { return j.alive() >= j.least() }

func (j *job) least() int { return cmp.Or(j.Min, j.Members) }

func (j *job) alive() int {
	n := 0
	for _, node := range j.nodes {
		if node >= 0 {
			n++
		}
	}
	return n
}

// entity returns the job as it waits, with the members that run.
func (j *job) entity(now int64) contention.Entity {
	gang := topology.Gang{
		Name: j.Name, Required: j.Require, Shapes: []topology.Shape{{Demand: j.demand()}},
	}
	for _, node := range j.nodes {
		m := topology.Member{}
		if node >= 0 {
			m.Placed, m.Node = true, node
		}
		gang.Members = append(gang.Members, m)
	}
	missing := j.Members - j.alive()
	e := contention.Entity{
		ID: contention.ID(
			j.Name,
		),
		Order:         j.order(),
		Ask:           contention.Ask{Gang: gang, Needed: max(1, j.least()-j.alive())},
		Preemptible:   j.Preemptible,
		Grace:         j.Grace,
		NeverPreempts: j.NeverPreempts,
		Accelerators:  int64(missing * j.GPUs),
		Elastic:       j.Elastic && !j.runs,
		Work:          j.Says,
		Sweep:         contention.Sweep{Name: j.Sweep, Limit: j.Limit},
	}
	if j.Certainty == contention.Reported || j.Certainty == contention.Certain {
		e.RunTime = j.Says
		if j.runs { // it ends with those that run
			e.RunTime = max(j.started+j.Says-now, 0)
		}
	}
	return e
}

// queue makes a job wait.
func (p *Player) queue(j *job) {
	if j.Daemon {
		p.note(Starts, j.Name, j.Pinned)
		p.begin(j, j.Pinned, p.now)
		p.machine.Taken(j.Pinned)
		return
	}
	j.waits = true
	j.waited -= p.now
	p.add(j)
}

// start starts the members that the machine placed.
func (p *Player) start(a contention.Placed) {
	j := p.jobs[string(a.ID)]
	var fresh []int
	for rank, node := range a.Placement.Nodes {
		if !a.Gang.Members[rank].Placed {
			fresh = append(fresh, node)
		}
	}
	passing := ""
	if len(a.Passed) > 0 {
		passing = " passing " + join(a.Passed)
	}
	p.logf("%s starts %s%s", j.Name, ranges(fresh), passing)
	p.note(Starts, j.Name, fresh)
	j.waits = false
	j.waited += p.now
	if j.first < 0 {
		j.first = p.now
	}
	p.begin(j, fresh, p.now)
	for _, action := range p.machine.Started(a.ID, fresh, p.now) {
		p.act(action)
	}
	if j.alive() < j.Members { // the surplus waits in its own place
		p.queue(j)
	}
}
