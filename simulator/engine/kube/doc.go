// Package kube plays a scenario with the real kube-scheduler: scheduler.New and ScheduleOne of the release that go.mod names, in virtual
// time and without an API server. Nothing of its decisions is imitated; what is imitated is the world around it.
//
//	e, err := kube.New(kube.Options{Profile: kube.Lockstep, Clock: clock.RealClock{}})
//	err = e.Run(ctx, scenario, watcher)
//
// # The world
//
// Informers call the scheduler's handlers in the caller's goroutine (informer.go), the client writes down what it is asked for
// (client.go), and what was written is delivered when the cycle is over, by name (deliver.go). Jobs are what the controller makes of
// them: a PodGroup of the job's name, and pods (objects.go). The clock stands still while anything is left to do at an
// instant; then it is moved to the next thing that is due: an end, an event of nodes, a submission, a timer of a plugin, the
// end of a pause of the scheduling queue (play.go).
//
// At an instant ends come first, then events of nodes, then submissions, then scheduling. Who is preempted, or loses a
// node, ends whole, and waits again at once with its place in the queue and its whole duration before it: traces have no checkpoints.
//
// # What is different from engine direct
//
// Nothing but instants, as the tests show in all of package scenarios and in random ones: the same gangs start in the same order on the same
// nodes, rank by rank. The scheduler gathers for 50 ms what changes before it asks those that wait (package parking), and so whoever
// waits for room, for its victims to leave, or for a place to be kept elsewhere, starts that much later, and all that follows does.
// One that was not asked for four minutes is asked with the next event, without the 50 ms.
//
// Two more differences were faults of the scheduler. One who preempted paused in the scheduling queue for up to two seconds, in which
// others started as if no place were kept for the next one: it was let out of the parking lot when its way was found, and so was not
// called when its victims had left. And if a more important gang took of the place that is kept for the first of the queue, nobody was asked
// who may pass now that this one has to wait longer, until something else happened.
//
// Victims that lose equally much are chosen in both by domain, then priority, then name. The core alone knows jobs that must not be
// preempted whatever their priority.
//
// A decision (engine.Watcher) is a cycle of the framework. The scheduler evaluates in it the waiting gangs that do not start, so there are
// fewer decisions than engine direct reports, and one may take longer than the evaluation of its own gang.
//
// # What is not as in a cluster
//
// Pods end as soon as they are deleted, or exactly when their grace is over. Calls to the API take no time and never fail. Gates: asynchronous API calls and preemption are
// off (they finish inside the cycle instead), opportunistic batching is off (it looks at the machine's clock).
// Kubernetes has no word for a job that must not be preempted whatever its priority, so Preemptible is not looked at.
// The stock generator lists topology domains in the order of a Go map and the scheduler breaks ties between
// them by unseeded chance: under Native domains come in an order that is drawn from the scenario's seed, and the first of it wins a tie
// (ties.go).
package kube
