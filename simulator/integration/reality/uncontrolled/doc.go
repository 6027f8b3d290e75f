// Package uncontrolled compares an uncontrolled run of a workload on real components with the simulator's replay of the
// same list.
//
//	plan := uncontrolled.Draw(1)                                            // 300 gangs with their arrivals, sizes, run times, priorities and deadlines
//	observed := uncontrolled.Observed(plan, begin, gpus, runs)              // its course on the embedded cluster
//	startup := uncontrolled.Measure(uncontrolled.Calibration(), begin, runs)  // the time of a start, on the idle cluster before
//	played, err := uncontrolled.Play(ctx, player, machines, plan, startup)
//	c := uncontrolled.Compare(machines, observed, played)
//	c.Spread, err = uncontrolled.Predict(ctx, player, machines, plan, startup)
//	c.Missing()                                                             // where the two differ by more than the bounds
//
// Unlike in package rerun, the simulator gets no observations: neither the instants at which gangs were complete, nor
// the time that they held their nodes, nor any end. Its inputs are the list and one figure, the time of a start on the
// idle cluster (simulate --startup).
//
// Submissions are replayed to the millisecond: with whole seconds the mean wait is a sixth too long
// (BenchmarkPlay_Quantum). Time is not scaled: rules of the queue have times of their own (ten minutes that a unit of
// unknown end is assumed to run on, budgets of idle hours), and with a second for each 250 ms the 95th percentile of
// the waits was 12 % too short.
package uncontrolled
