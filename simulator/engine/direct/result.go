package direct

import "math"

// Never is the instant of what did not happen.
const Never = math.MaxInt64

// Result is the outcome of a scene.
type Result struct {
	// Jobs are indexed like the scene's.
	Jobs []Outcome
	// End is the last instant that was played.
	End int64
	// Makespan is the time from the scene's Now to the last end of a job.
	Makespan int64
	// Utilization is the part of the fleet's accelerators that was in use, as a mean over the time in which at least one job
	// waited: while none waits, idle accelerators are not the scheduler's fault. 0 if none ever waited.
	Utilization float64
	// Contended is how long at least one job waited, in seconds.
	Contended int64
	// Reservations compares the instants of leases with the starts.
	Reservations Accuracy
	// Preemptions is how many jobs were preempted.
	Preemptions int
	// Lost is the work that was lost with them, in accelerator-seconds.
	Lost int64
	// Decisions is how many entities were evaluated.
	Decisions int
}

// Outcome is the outcome of one job.
type Outcome struct {
	// Started is the instant of the first start, Never if there was none.
	Started int64
	// Ended is the instant of the end, Never if there was none.
	Ended int64
	// Waited is how long the job waited in all, after preemptions too, until the last instant of the scene.
	Waited int64
	// Reserved is the instant of the job's first closed lease, Never if it had none or none with a firm instant.
	Reserved int64
	// Guessed says that the first closed lease rested on guesses.
	Guessed bool
	// Bypassed is how many others started while the job was the first that waited.
	Bypassed int
	// Preempted is how often the job was preempted.
	Preempted int
}

// Accuracy compares the instants of first leases with the real starts.
type Accuracy struct {
	// Kept is how many jobs had a closed lease.
	Kept int
	// Unknown is how many of these leases rested on guesses, Waiting how many of the other jobs had not started in the end. Those that
	// are left are compared.
	Unknown, Waiting int
	// Mean is the mean of the absolute error in seconds, 0 if none is compared.
	Mean float64
	// P95 is the 95th percentile of the absolute error in seconds.
	P95 int64
	// OnTime is the part that started at the instant of the lease or before.
	OnTime float64
}
