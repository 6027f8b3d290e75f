package direct

import "math"

// Never is the instant of what did not happen.
const Never = math.MaxInt64

// Result is what came of a scene.
type Result struct {
	// Jobs are indexed like the scene's.
	Jobs []Outcome
	// End is the last instant at which something happened, Makespan the time from the scene's Now to the last end of a job.
	End, Makespan int64
	// Utilization is the part of the fleet's accelerators that was in use, as a mean over the time in which at least one
	// gang waited, from the scene's Now to End: while nobody waits, it is not the scheduler's fault that something is idle.
	// 0 if nobody ever waited. Contended is how long that was, in seconds.
	Utilization float64
	Contended   int64
	// Reservations says how right the reservations were.
	Reservations Accuracy
	// Preemptions is how many gangs were ended for others, Lost the accelerator-seconds of work that were lost with them.
	Preemptions int
	Lost        int64
	// Decisions is how many questions were put to the core.
	Decisions int
}

// Outcome is what came of one job.
type Outcome struct {
	// Started is the instant of the first start, Ended that of the end; Never if it did not come to that.
	Started, Ended int64
	// Waited is how long it waited in all, after preemptions too, until the last instant of the scene.
	Waited int64
	// Reserved is the instant that was predicted for its start when a place was first kept for it: Never if none was kept,
	// decision.Someday if nobody knew.
	Reserved int64
	// Bypassed is how many others started while it was the first that waited.
	Bypassed int
	// Preempted is how often it was ended for others.
	Preempted int
}

// Accuracy compares the starts that were predicted when a place was first kept with the real ones.
type Accuracy struct {
	// Kept is how many gangs had a place kept, Unknown for how many of these no instant was known, Waiting how many of the
	// others had not started in the end. Those that are left are compared.
	Kept, Unknown, Waiting int
	// Mean and P95 are of the absolute error, in seconds; OnTime is the part that started at the predicted instant or
	// before. 0 if none is compared.
	Mean   float64
	P95    int64
	OnTime float64
}
