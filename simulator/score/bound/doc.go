// Package bound computes lower bounds: the least time that the jobs of a scenario take with any scheduler.
//
//	b := bound.Of(scenario)
//	b.JCT // no scheduler has a lower mean completion time
//
// All accelerators of the fleet together are one machine that works at their number of accelerator-seconds per second,
// on any part of any job that has been submitted. This machine can do the work of any real schedule, so that its
// optimum is a bound. Nodes, topology, gangs that start together, whole accelerators and initial units are ignored.
//
// Two optima are known in closed form:
//
//   - The sum of completion times of preemptive jobs with release dates on one machine is least if the job with the least work left always
//     runs (SRPT; Schrage, "A Proof of the Optimality of the Shortest Remaining Processing Time Discipline", Operations Research 16, 1968).
//   - The weighted sum of mean busy times, the mean instants at which a job is worked on, is least if the job with the highest weight for its
//     work always runs (Goemans, "Improved Approximation Algorithms for Scheduling with Release Dates", SODA 1997). A job that runs for d
//     seconds at a constant speed has a mean busy time of at most its completion less d/2, so that each such sum bounds completions.
//
// Beside both stands that a job ends no earlier than its submission and its run time. Work that is lost to preemption
// or failures makes a real schedule longer still.
package bound
