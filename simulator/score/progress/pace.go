package progress

import "time"

// paceOver is the wall time that rates are means over.
const paceOver = 5 * time.Second

// pace is the recent speed of a run.
type pace struct{ marks []mark }

// mark is the progress of a run at an instant.
type mark struct {
	wall, virtual time.Duration
	events        uint64
}

// rates are events a second, and the speed of virtual time as a multiple of the wall clock.
type rates struct{ events, speed float64 }

// at records the progress of a run, and returns its rates. A snapshot that is not new counts too: the run is slow then.
func (p *pace) at(s *Snapshot, wall time.Duration) rates {
	now := mark{wall: wall, virtual: s.Virtual, events: s.Events}
	if len(p.marks) == 0 {
		p.marks = append(p.marks, mark{})
	}
	if s.Over {
		return between(mark{}, now)
	}
	if last := p.marks[len(p.marks)-1]; now.wall > last.wall {
		p.marks = append(p.marks, now)
	}
	for len(p.marks) > 2 && now.wall-p.marks[1].wall >= paceOver {
		p.marks = p.marks[1:]
	}
	return between(p.marks[0], now)
}

func between(from, to mark) rates {
	seconds := (to.wall - from.wall).Seconds()
	if seconds <= 0 {
		return rates{}
	}
	return rates{
		events: float64(to.events-from.events) / seconds,
		speed:  (to.virtual - from.virtual).Seconds() / seconds,
	}
}
