// Package kube plays a scenario with the real kube-scheduler: scheduler.New and ScheduleOne of the release that go.mod
// names, in virtual time and without an API server. Its decisions are not simulated; the world around it is.
//
//	e, err := kube.New(kube.Options{Profile: kube.Lockstep, Clock: clock.RealClock{}})
//	err = e.Run(ctx, scenario, watcher)
//
// # The world
//
// Informers call the scheduler's handlers in the caller's goroutine (informer.go), the client records API calls
// (client.go), and these are delivered when the cycle is over, by name (deliver.go). Jobs have the objects that the
// controller makes: a PodGroup of the job's name, and pods (objects.go). The clock stands still while work is left at
// an instant; then it is moved to the next due event: an end, an event of nodes, a submission, a timer of a plugin, the
// end of a backoff of the scheduling queue (play.go).
//
// At an instant ends are played first, then events of nodes, then submissions, then scheduling. A job that is
// preempted, or loses a node, ends whole, and waits again at once with its place in the queue and its whole duration
// before it: traces have no checkpoints.
//
// # Differences from engine direct
//
// Nothing but instants, as the tests show in all of package scenarios and in random ones: the same gangs start in the
// same order on the same nodes, rank by rank. The scheduler batches changes for 50 ms before it evaluates waiting gangs
// (package parking), and so a gang that waits for room, for its victims to leave, or for a place to be reserved
// elsewhere, starts that much later, with all that follows. One that was not evaluated for four minutes is evaluated
// with the next event, without the 50 ms.
//
// Two more differences were faults of the scheduler. A gang that preempted stayed in backoff for up to two seconds, in
// which others started as if no place were reserved for the next one: it left the parking lot when its victims were
// chosen, and so was not called when its victims had left. And if a gang of higher priority took a part of the place
// that is reserved for the head of the queue, no gang was evaluated that may pass now that the head has to wait longer,
// until another event.
//
// Victims that lose equally much are chosen in both by domain, then priority, then name. The core alone knows jobs that
// must not be preempted whatever their priority.
//
// A decision (engine.Watcher) is a cycle of the framework. The scheduler evaluates in it the waiting gangs that do not
// start, so there are fewer decisions than engine direct reports, and one may take longer than the evaluation of its
// own gang.
//
// # Differences from a cluster
//
// Pods end as soon as they are deleted, or exactly when their grace is over. Calls to the API take no time and never
// fail. Gates: asynchronous API calls and preemption are off (they finish inside the cycle instead), opportunistic
// batching is off (it reads the machine's clock). Kubernetes has no field for a job that must not be preempted whatever
// its priority, so Preemptible is ignored. The stock generator lists topology domains in the order of a Go map and the
// scheduler breaks ties between them at random without a seed: under Native domains are listed in an order that is
// drawn from the scenario's seed, and the first of it wins a tie (ties.go).
package kube
