// Package runtimes learns the run times of workloads, for those that declare no end.
//
//	learner := runtimes.New(clock)
//	learner.Waits("team/bert-7", key) // 0 s: nothing has ended yet
//	learner.Starts("team/bert-7")
//	learner.Ends("team/bert-7", runtimes.Succeeded)
//	learner.Leaves("team/bert-7") // the last member: the run counts
//
// A run counts when it completes: its last member has left, one has succeeded, and none has failed, was evicted, or was
// deleted before one succeeded. Its time is that of the last attempt, from the start of the first member to the
// departure of the last. A prediction is fixed when its workload begins to wait, so that neither its place in the queue
// nor a lease that others passed moves with each run that ends. Declared ends win over predictions: callers ask for a
// prediction only if a workload declares none.
package runtimes
