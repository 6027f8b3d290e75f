// Package progress shows how far runs have come, while they run: on a terminal a screen with a bar, what is allocated where and
// who waits, elsewhere a line now and then, or JSON for programs.
//
//	ctx, shown := progress.Start(ctx, progress.Options{Out: os.Stderr, In: os.Stdin, Form: form, Clock: clock.RealClock{}, Runs: 1})
//	run := shown.Watch("lockstep/1", s)
//	err := engine.Run(ctx, s, run)
//	run.Done()
//	shown.Close()
//
// # What it costs, and what it changes
//
// A run counts what its engine tells it, in the engine's goroutine, and looks at one word of memory an event. At most ten times a
// second that word asks for a snapshot, which is left in a mailbox with room for one: a newer one takes its place. All drawing and
// writing is done by others, so a terminal that does not take any bytes holds up nobody. Nothing here changes what an engine
// decides. A reader can only make it wait (p) or end it where it is (q), by the context.
//
// # What is approximate
//
// Percentiles of decisions are within 3.2 per cent, as they are counted in buckets. The time that is left assumes that jobs go on ending
// at the mean rate so far. Why a gang waits is told from what is counted: an engine says only that it was refused.
package progress
