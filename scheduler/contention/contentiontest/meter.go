package contentiontest

import "strings"

// meter measures the GPUs in use over time.
type meter struct {
	used int64
	// busy is the sum of GPU-seconds in use since the beginning, at the instants at which it was read.
	busy  int64
	begun int64
	set   bool
}

// elapse lets time pass.
func (p *Player) elapse(until int64) {
	if p.now >= 0 && until > p.now {
		p.meter.busy += p.meter.used * (until - p.now)
	}
	p.now = max(p.now, until)
	if !p.meter.set {
		p.meter.set, p.meter.begun = true, p.now
	}
}

// Reset begins a new measurement of the GPUs in use.
func (p *Player) Reset() { p.meter.busy, p.meter.begun = 0, p.now }

// InUse returns the part of all GPUs that was in use since the last Reset, in thousandths.
func (p *Player) InUse() int64 {
	all := p.fleet() * (p.now - p.meter.begun)
	if all == 0 {
		return 0
	}
	return p.meter.busy * 1000 / all
}

// Waits returns the numbers of started and waiting jobs with that prefix, and the mean wait in seconds of all that
// arrived.
func (p *Player) Waits(prefix string) (started, waiting int, mean int64) {
	var sum int64
	arrived := 0
	for name, j := range p.jobs {
		if !strings.HasPrefix(name, prefix) || j.Arrives > p.now || j.On != nil {
			continue
		}
		arrived++
		waited := j.waited
		if j.waits {
			waiting++
			waited += p.now
		}
		if j.first >= 0 {
			started++
		}
		sum += waited
	}
	if arrived == 0 {
		return 0, 0, 0
	}
	return started, waiting, sum / int64(arrived)
}

// Idled returns the part of all GPUs, in thousandths, that leases have idled since the last Reset. Idle time older than
// a week is not counted.
func (p *Player) Idled() int64 {
	var sum int64
	for _, amount := range p.machine.State().Idled {
		sum += amount
	}
	if all := p.fleet() * (p.now - p.meter.begun); all > 0 {
		return sum * 1000 / all
	}
	return 0
}
