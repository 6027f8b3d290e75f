// Package progress shows the progress of runs: on a terminal a screen with a bar, the allocation by domain and the
// waiting gangs, elsewhere a line now and then, or JSON for programs.
//
//	ctx, shown := progress.Start(ctx, progress.Options{Out: os.Stderr, In: os.Stdin, Form: form, Clock: clock.RealClock{}, Runs: 1})
//	run := shown.Watch("lockstep/1", s)
//	err := engine.Run(ctx, s, run)
//	run.Done()
//	shown.Close()
//
// # Cost and effects
//
// A run counts its engine's events, in the engine's goroutine, and reads one word of memory an event. At most ten times
// a second that word asks for a snapshot, which is left in a mailbox with room for one: a newer one takes its place.
// Other goroutines draw and write, so a terminal that does not take any bytes holds up no engine. Nothing here changes
// an engine's decisions. A reader can only make it wait (p) or end it at once (q), by the context.
//
// # Approximations
//
// Percentiles of decisions are within 3.2 per cent, as they are counted in buckets. The remaining time assumes that
// jobs continue to end at the mean rate so far. The reason why a gang waits is derived from these counts: an engine
// reports only that it was refused.
package progress
