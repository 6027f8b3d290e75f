package direct

import (
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
)

// Foreseen is the state of a job's wait when it begins.
type Foreseen struct {
	// Job is the index of the job, At the instant at which it begins to wait.
	Job int
	At  int64
	// Outlook is the forecast's input about its wait.
	Outlook forecast.Outlook
}

// Foresees names the jobs whose starts are forecast, with Options.Learns and a queue of the product.
type Foresees struct {
	// Every is n if a forecast is made for one in n jobs that begin to wait.
	Every int
	// Tell receives the forecasts; nil for none.
	Tell func(Foreseen)
}

// foresee makes a forecast of the start of a job that begins to wait, if it is its turn.
func (p *player) foresee(i int) {
	f := p.options.Foresees
	m, product := p.machine.(*contention.Machine)
	if f.Tell == nil || p.history == nil || !product {
		return
	}
	if p.refused++; (p.refused-1)%f.Every != 0 {
		return
	}
	f.Tell(Foreseen{Job: i, At: p.now, Outlook: p.outlook(m, i)})
}

// outlook returns the known inputs of the wait of a job.
func (p *player) outlook(m *contention.Machine, of int) forecast.Outlook {
	b := forecast.Backlog{Free: p.tally.all - p.tally.used}
	job := &p.scene.Jobs[of]
	out := forecast.Outlook{
		Accelerators: job.Accelerators, Peers: forecast.Peers(job.Kind.Namespace, job.Order.Priority),
	}
	for _, r := range p.runs.ends.runs {
		if r.job != none && p.scene.Jobs[r.job].Bound == nil { // of the others, no end is known
			left := p.jobs[r.job].usual.Left(p.now - r.start)
			b.Running = append(b.Running, forecast.Work{Accelerators: r.unit.Accelerators, Seconds: left})
		}
	}
	before := true
	for _, id := range m.Waiting() {
		i := p.byID[id]
		before = before && i != of
		n := p.scene.Jobs[i].Accelerators
		if i != of && n == out.Accelerators {
			out.Oldest = max(out.Oldest, p.now-p.jobs[i].since)
		}
		if before {
			b.Ahead = append(b.Ahead, forecast.Work{Accelerators: n, Seconds: p.jobs[i].usual.Left(0)})
		}
	}
	out.Backlog = b.Wait(out.Accelerators)
	return out
}
