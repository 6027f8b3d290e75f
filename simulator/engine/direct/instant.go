package direct

import (
	"cmp"
	"time"
)

// instant is a time: a second, and the rest after it. The queue receives the second, as the scheduler's does; the rest
// orders the events of a second. Runs take whole seconds, so that they end as long after a second as they began.
type instant struct {
	second int64
	past   time.Duration
}

// compare orders instants, the earlier one first.
func (a instant) compare(b instant) int {
	return cmp.Or(cmp.Compare(a.second, b.second), cmp.Compare(a.past, b.past))
}

// arrives is the instant at which a job arrives.
func (j *Job) arrives() instant { return instant{j.Arrives, j.Past} }

// instant returns the time that the clock shows.
func (p *player) instant() instant { return instant{p.now, p.past} }

// next is the first instant at which something happens, except for a recheck; its second is Forever if there is none.
func (p *player) next() instant {
	begin, next := instant{second: p.scene.Now}, p.runs.ends.first()
	soonest := func(other instant) {
		if other.compare(begin) < 0 {
			other = begin
		}
		if other.compare(next) < 0 {
			next = other
		}
	}
	if at := p.firstParting(); at != Forever {
		soonest(instant{second: at})
	}
	if len(p.events) > 0 {
		soonest(instant{second: p.events[0].At})
	}
	if len(p.backlog.arrivals) > 0 {
		soonest(p.scene.Jobs[p.backlog.arrivals[0]].arrives())
	}
	return next
}
