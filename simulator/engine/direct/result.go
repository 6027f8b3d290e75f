package direct

import "math"

// Never is the instant of an event that did not happen.
const Never = math.MaxInt64

// Result is the outcome of a scene.
type Result struct {
	// Jobs are indexed like the scene's.
	Jobs []Outcome
	// End is the last instant that was played.
	End int64
	// Makespan is the time from the scene's Now to the last end of a job.
	Makespan int64
	// Utilization is the part of the fleet's accelerators that was in use, as a mean over the time in which at least
	// one job waited: while none waits, idle accelerators are not the scheduler's fault. 0 if none ever waited.
	Utilization float64
	// Contended is the time for which at least one job waited, in seconds.
	Contended int64
	// Reservations compares the instants of leases with the starts.
	Reservations Accuracy
	// Preemptions is the number of jobs that were preempted.
	Preemptions int
	// Lost is the work that was lost with them, in accelerator-seconds.
	Lost int64
	// Decisions is the number of evaluated entities.
	Decisions int
}

// Outcome is the outcome of one job.
type Outcome struct {
	// Started is the instant of the first start, Never if there was none.
	Started int64
	// Ended is the instant of the end, Never if there was none.
	Ended int64
	// Waited is the time that the job waited in all, after preemptions too, until the last instant of the scene.
	Waited int64
	// Reserved is the instant of the job's first closed lease, Never if it had none or none with a firm instant.
	Reserved int64
	// Guessed is set if the first closed lease rested on guesses.
	Guessed bool
	// Bypassed is the number of others that started while the job was the first that waited.
	Bypassed int
	// Preempted counts the preemptions of the job.
	Preempted int
}

// Accuracy compares the instants of first leases with the real starts.
type Accuracy struct {
	// Leased is the number of jobs that had a closed lease.
	Leased int
	// Unknown is the number of these leases that rested on guesses, Waiting that of the other jobs that had not started
	// in the end. The remaining ones are compared.
	Unknown, Waiting int
	// Mean is the mean of the absolute error in seconds, 0 if none is compared.
	Mean float64
	// P95 is the 95th percentile of the absolute error in seconds.
	P95 int64
	// OnTime is the part that started at the instant of the lease or before.
	OnTime float64
}
