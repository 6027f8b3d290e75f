package progress

import "time"

// mostGangs is the number of gangs of the queue in a snapshot.
const mostGangs = 8

// Snapshot is the progress of a run at an instant. Durations are as Go has them.
type Snapshot struct {
	// Name is the run's: its scheduler and its seed; empty if there is but one. It is the Number'th of Runs.
	Name         string
	Number, Runs int
	Fleet, Trace string
	// Virtual is the time that has passed in the scenario, Wall the time that it took, without pauses.
	Virtual, Wall time.Duration
	// Over is set if nothing follows.
	Over bool
	// Jobs is the number in the trace; Submitted of them have arrived, and Ended, Running and Waiting count those by
	// state.
	Jobs, Submitted, Ended, Running, Waiting int
	// WaitingGPUs is the sum of the waiting ones' requests, LargestWaiting the largest of them; OldestWait the longest
	// wait of one of them.
	WaitingGPUs, LargestWaiting int64
	OldestWait                  time.Duration
	// GPUs are the accelerators that are in service or in use, GPUsInUse the latter, Fitted those that the fleet has.
	GPUs, GPUsInUse, Fitted int64
	// Events and Decisions are their numbers, Pods the number of pods that started; P50 and P99 the times that
	// decisions took.
	Events, Decisions, Pods uint64
	P50, P99                time.Duration
	// Level is that of Domains; empty for none.
	Level   string
	Domains []DomainUse
	// Uses is the part of the accelerators in use, 0 to 1, over equal parts of the virtual time so far.
	Uses []float64
	// Queue lists some waiting gangs: the one that has a reserved place, and the earliest ones.
	Queue []Gang

	// taken is the wall clock's instant.
	taken time.Time
}

// View is a snapshot with the rates and the state of its run.
type View struct {
	Snapshot
	rates
	// Paused is set if a reader lets the run wait.
	Paused bool
}

// DomainUse is the number of accelerators of a domain, and that of those in use.
type DomainUse struct {
	Name         string
	InUse, There int64
}

// Gang is one that waits.
type Gang struct {
	Name string
	GPUs int64
	Pods int
	// Waits is the time of its wait, Why the known part of its reason.
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

// Left returns the remaining wall time if jobs continue to end at the mean rate so far; false if it cannot be
// estimated.
func (s *Snapshot) Left() (time.Duration, bool) {
	if s.Ended == 0 || s.Wall < time.Second || s.Over {
		return 0, false
	}
	return time.Duration(float64(s.Wall) / float64(s.Ended) * float64(s.Jobs-s.Ended)), true
}
