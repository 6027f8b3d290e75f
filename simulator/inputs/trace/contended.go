package trace

import "time"

// Contended returns the stretch of so many consecutive jobs that asks for most accelerator-hours per hour of its
// arrivals, the first of equal ones. It begins with the first arrival at 0. Events are left out, and so are dates. A
// trace with no more jobs is returned unchanged.
func (t Trace) Contended(jobs int) Trace {
	if jobs <= 0 || len(t.Jobs) <= jobs {
		return t
	}
	first, most := 0, -1.0
	work := 0.0
	for i := range t.Jobs {
		work += t.Jobs[i].hours()
		begin := i - jobs + 1
		if begin < 0 {
			continue
		}
		// A second more, since all may be submitted at once.
		if load := work / (t.Jobs[i].Submit - t.Jobs[begin].Submit + time.Second).Hours(); load > most {
			first, most = begin, load
		}
		work -= t.Jobs[begin].hours()
	}
	out := t
	out.Events, out.Jobs = nil, make([]Job, jobs)
	copy(out.Jobs, t.Jobs[first:])
	for i := range out.Jobs {
		out.Jobs[i].Submit -= t.Jobs[first].Submit
	}
	return out
}

// hours returns the accelerator-hours that a job asks for.
func (j Job) hours() float64 { return float64(j.GPUs()) * j.Duration.Hours() }
