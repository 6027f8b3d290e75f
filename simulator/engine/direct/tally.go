package direct

import (
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// tally accumulates the figures of a result.
type tally struct {
	jobs []Outcome
	// all is the number of accelerators of the fleet, used that of those that are held.
	all, used int64
	// contended is the time for which at least one job waited, busy the accelerator-seconds that were in use meanwhile.
	contended, busy        int64
	preemptions, decisions int
	lost                   int64
}

func newTally(scene Scene) tally {
	t := tally{jobs: make([]Outcome, len(scene.Jobs))}
	for i := range t.jobs {
		t.jobs[i] = Outcome{Started: Never, Ended: Never, Reserved: Never}
	}
	for _, free := range scene.Ledger.Free {
		if scene.Accelerator < len(free) {
			t.all += free[scene.Accelerator]
		}
	}
	for _, r := range scene.Running {
		t.all += accelerators(r.Holds, scene.Accelerator)
	}
	return t
}

// accelerators counts those that are held.
func accelerators(holds []topology.Held, resource int) int64 {
	var sum int64
	for _, held := range holds {
		if resource < len(held.Demand) {
			sum += held.Demand[resource]
		}
	}
	return sum
}

func (t *tally) elapse(seconds int64, waiting int) {
	if waiting > 0 {
		t.contended += seconds
		t.busy += seconds * t.used
	}
}

func (t *tally) start(i int, at, waited int64) {
	o := &t.jobs[i]
	o.Started = min(o.Started, at)
	o.Waited += waited
}

func (t *tally) keep(i int, at int64) {
	o := &t.jobs[i]
	switch {
	case o.Reserved != Never || o.Guessed || o.Started != Never: // only the first counts
	case at == Forever:
		o.Guessed = true
	default:
		o.Reserved = at
	}
}

func (t *tally) preempt(i int, lost int64) {
	t.jobs[i].Preempted++
	t.preemptions++
	t.lost += lost
}

func (p *player) result() Result {
	t := &p.tally
	out := Result{
		Jobs: t.jobs, End: p.now, Contended: t.contended, Reservations: accuracy(t.jobs),
		Preemptions: t.preemptions, Lost: t.lost, Decisions: t.decisions,
	}
	if t.contended > 0 && t.all > 0 {
		out.Utilization = float64(t.busy) / float64(t.contended) / float64(t.all)
	}
	for i := range t.jobs {
		if p.jobs[i].waits {
			t.jobs[i].Waited += p.now - p.jobs[i].since
		}
		if ended := t.jobs[i].Ended; ended != Never {
			out.Makespan = max(out.Makespan, ended-p.scene.Now)
		}
	}
	return out
}

// accuracy compares first starts with the instants of first leases.
func accuracy(jobs []Outcome) Accuracy {
	var a Accuracy
	var errors []int64
	onTime := 0
	for _, o := range jobs {
		switch {
		case o.Guessed:
			a.Unknown++
		case o.Reserved == Never:
			continue
		case o.Started == Never:
			a.Waiting++
		default:
			errors = append(errors, max(o.Started-o.Reserved, o.Reserved-o.Started))
			if o.Started <= o.Reserved {
				onTime++
			}
		}
		a.Leased++
	}
	if len(errors) == 0 {
		return a
	}
	slices.Sort(errors)
	for _, e := range errors {
		a.Mean += float64(e)
	}
	a.Mean /= float64(len(errors))
	a.P95 = errors[int(math.Ceil(0.95*float64(len(errors))))-1]
	a.OnTime = float64(onTime) / float64(len(errors))
	return a
}
