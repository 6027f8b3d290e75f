package progress

import "time"

// mostGangs is how many gangs of the queue a snapshot has.
const mostGangs = 8

// Snapshot is how far a run had come at an instant. Durations are as Go has them.
type Snapshot struct {
	// Name is the run's: its scheduler and its seed; empty if there is but one. It is the Number'th of Runs.
	Name         string
	Number, Runs int
	Fleet, Trace string
	// Virtual is how far the scenario has come, Wall how long that took, without pauses.
	Virtual, Wall time.Duration
	// Over says that nothing follows.
	Over bool
	// Jobs is how many the trace has; Submitted of them have come and Ended, Running and Waiting are where those are.
	Jobs, Submitted, Ended, Running, Waiting int
	// WaitingGPUs is what the waiting ones ask for together, LargestWaiting the largest of them; OldestWait the longest time
	// that one of them waits.
	WaitingGPUs, LargestWaiting int64
	OldestWait                  time.Duration
	// GPUs are the accelerators that are in service or in use, GPUsInUse the latter, Fitted those that the fleet has.
	GPUs, GPUsInUse, Fitted int64
	// Events and Decisions are how many there were, Pods how many pods started; P50 and P99 what decisions took.
	Events, Decisions, Pods uint64
	P50, P99                time.Duration
	// Level is what Domains are domains of; empty for none.
	Level   string
	Domains []DomainUse
	// Uses is the part of the accelerators in use, 0 to 1, over equal parts of the virtual time so far.
	Uses []float64
	// Queue are some gangs that wait: the one for which a place is kept, and those that came first.
	Queue []Gang

	// taken is the wall clock's instant.
	taken time.Time
}

// View is a snapshot with what is known beside it.
type View struct {
	Snapshot
	rates
	// Paused says that a reader lets the run wait.
	Paused bool
}

// DomainUse is how many accelerators of a domain are there, and how many of them in use.
type DomainUse struct {
	Name         string
	InUse, There int64
}

// Gang is one that waits.
type Gang struct {
	Name string
	GPUs int64
	Pods int
	// Waits is for how long, Why is what is known of its reason.
	Waits time.Duration
	Why   string
}

// Allocation is the part of the accelerators in service that is in use, 0 to 1.
func (s *Snapshot) Allocation() float64 {
	if s.GPUs == 0 {
		return 0
	}
	return float64(s.GPUsInUse) / float64(s.GPUs)
}

// Left is how much wall time is left if jobs go on ending as fast as they did on the mean; false if that cannot be told.
func (s *Snapshot) Left() (time.Duration, bool) {
	if s.Ended == 0 || s.Wall < time.Second || s.Over {
		return 0, false
	}
	return time.Duration(float64(s.Wall) / float64(s.Ended) * float64(s.Jobs-s.Ended)), true
}
