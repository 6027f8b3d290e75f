package runtimes

import (
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
)

// Sight is the queue as a workload sees it when it begins to wait.
type Sight struct {
	// Accelerators is the number that it requests, Free the number of free ones.
	Accelerators, Free int64
	// Oldest is the wait so far, in seconds, of the workload that waits longest of those that request as many.
	Oldest int64
	// Peers names those that wait about as long (forecast.Peers).
	Peers string
	// Running are the running units, Ahead the entities that wait before it, in the order of the queue.
	Running []*contention.Unit
	Ahead   []Ahead
}

// Ahead is a workload that waits.
type Ahead struct {
	ID contention.ID
	// Accelerators is the number that it requests.
	Accelerators int64
}

// Foreseen is the forecast of a start.
type Foreseen struct {
	forecast.Interval

	// At is the instant at which it was made, in seconds since 1970: the wait counts from then.
	At int64
}

// Foresee forecasts when a workload starts that has to wait, if that was not done. sight is called for it only.
func (l *Learner) Foresee(id contention.ID, sight func() Sight) {
	if l == nil || l.foreseen(id) {
		return
	}
	seen := sight()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := forecast.Backlog{Free: seen.Free}
	for _, u := range seen.Running {
		if u.End.Certainty == contention.Never {
			continue
		}
		work := forecast.Work{Accelerators: u.Accelerators, Seconds: u.End.At - now}
		if u.End.Certainty != contention.Certain && u.End.Certainty != contention.Reported || u.End.At <= now {
			var usual forecast.Usual
			if r := l.runs[u.ID]; r != nil {
				usual = r.usual
			}
			work.Seconds = usual.Left(max(now-u.Started, 0))
		}
		b.Running = append(b.Running, work)
	}
	for _, w := range seen.Ahead {
		b.Ahead = append(b.Ahead, forecast.Work{Accelerators: w.Accelerators, Seconds: l.waits[w.ID].usual.Left(0)})
	}
	l.starts.Tell(string(id), now, forecast.Outlook{
		Accelerators: seen.Accelerators, Backlog: b.Wait(seen.Accelerators), Oldest: seen.Oldest, Peers: seen.Peers,
	})
}

func (l *Learner) foreseen(id contention.ID) bool {
	_, known := l.Foreseen(id)
	return known
}

// Foreseen returns the forecast of a workload that waits; false without one.
func (l *Learner) Foreseen(id contention.ID) (Foreseen, bool) {
	if l == nil {
		return Foreseen{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at, told, ok := l.starts.Forecast(string(id))
	return Foreseen{told, at}, ok
}

// Withdraws reports that a workload does not wait any more, and has not started.
func (l *Learner) Withdraws(id contention.ID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts.Forget(string(id))
}
