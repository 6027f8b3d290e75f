package direct

import (
	"hash/fnv"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/topology"
)

// Foreseen is what is known of the start of a job when it begins to wait.
type Foreseen struct {
	// Job is the index of the job, At the instant at which it begins to wait.
	Job int
	At  int64
	// Starts are the instants at which it starts in copies of the queue whose run times are drawn, ascending; Forever for none. In a copy, no other job
	// arrives.
	Starts []int64
}

// Foresees says of which jobs starts are forecast. Each forecast plays the queue several times.
type Foresees struct {
	// Every is for one in how many jobs that begin to wait a forecast is made.
	Every int
	// Tell receives the forecasts; nil for none.
	Tell func(Foreseen)
}

// samples is how many copies of the queue are played for a forecast: of nine, the first and the last are a little more than eight in ten apart.
const samples = 9

// foresee makes a forecast of the start of a job that begins to wait, if it is its turn.
func (p *player) foresee(i int) {
	f := p.options.Foresees
	if f.Tell == nil || p.history == nil {
		return
	}
	if p.refused++; (p.refused-1)%f.Every != 0 {
		return
	}
	units, jobs := p.ahead(i)
	out := Foreseen{Job: i, At: p.now, Starts: make([]int64, samples)}
	for k := range samples {
		out.Starts[k] = p.copyOf(units, jobs, k).startOf(len(jobs) - 1)
	}
	slices.Sort(out.Starts)
	f.Tell(out)
}

// drawn is a run, or a job that waits, with what is known of its run time.
type drawn struct {
	job  int
	run  *run
	runs *forecast.Distribution
}

// ahead returns what runs, and the jobs that wait up to one, which is the last of them.
func (p *player) ahead(last int) (units, jobs []drawn) {
	for i := range p.jobs {
		if r := p.jobs[i].run; r != nil {
			units = append(units, drawn{i, r, p.history.Of(p.scene.Jobs[i].Kind)})
		}
	}
	for _, r := range p.begun {
		units = append(units, drawn{nobody, r, &forecast.Distribution{}})
	}
	for _, i := range p.order[:p.jobs[last].rank+1] {
		if p.jobs[i].waits {
			jobs = append(jobs, drawn{i, nil, p.history.Of(p.scene.Jobs[i].Kind)})
		}
	}
	return units, jobs
}

// draw returns the run time in seconds of what has run for so many, in a copy of the queue: the copies divide the distribution evenly, from a beginning that
// depends on the name. Of what outlasts all that is known, as long again as it has run is left.
func (d drawn) draw(name string, ran int64, sample int) int64 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	const whole = 1000
	at := (int64(sum.Sum32()%whole) + int64(sample)*whole/samples) % whole
	if seconds, ok := d.runs.Quantile(max(at, 1), ran); ok {
		return seconds
	}
	return 2*ran + 60
}

// copyOf returns a player of a copy of the queue, in which run times are drawn.
func (p *player) copyOf(units, jobs []drawn, sample int) *player {
	ledger := p.book.Ledger()
	ledger.Free = make([]topology.Capacity, len(ledger.Free))
	for node, free := range p.book.Ledger().Free {
		ledger.Free[node] = slices.Clone(free)
	}
	out := Scene{Now: p.now, Ledger: ledger, Accelerator: p.scene.Accelerator, Closed: make([]bool, len(p.closed))}
	for node := range p.closed {
		out.Closed[node] = p.closed[node].why != 0
	}
	for _, d := range units {
		r := Running{
			Name:     string(d.run.unit.ID),
			Holds:    d.run.holds,
			Started:  d.run.start,
			Expected: d.run.unit.End,
			Ends:     Forever,
		}
		switch {
		case d.run.leaves != Forever:
			r.Ends = d.run.leaves
		case d.job != nobody && p.scene.Jobs[d.job].Bound == nil:
			r.Ends = d.run.start + d.draw(r.Name, p.now-d.run.start, sample)
		}
		out.Running = append(out.Running, r)
	}
	for _, d := range jobs {
		of := p.scene.Jobs[d.job]
		of.Order, of.Arrives = p.jobs[d.job].order, p.now
		of.Runs, of.Promises = d.draw(of.Name, 0, sample), p.runTime(d.job)
		out.Jobs = append(out.Jobs, of)
	}
	options := p.options
	options.Learns, options.Foresees = false, Foresees{}
	return newPlayer(out, options, func(Event) {})
}

// mostSteps bounds the instants that a copy is played for.
const mostSteps = 5000

// startOf plays until a job starts, and returns that instant.
func (p *player) startOf(i int) int64 {
	for steps := 0; steps < mostSteps && p.jobs[i].run == nil && p.step(); steps++ {
		p.rounds()
		p.report()
	}
	if r := p.jobs[i].run; r != nil {
		return r.start
	}
	return Forever
}
