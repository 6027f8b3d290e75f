// Package results stores the outcome of a run in a directory, and reads it back:
//
//	scorecard.json    the scorecard (measure.Scorecard); its field "partial" says why the result is not whole
//	scene.json        the meaning of the numbers in events (Outline): nodes with their domains, jobs, options
//	events.jsonl.gz   the events, one JSON object a line, in virtual time (or events.jsonl)
//	report.html       the report, if one was written
//
// A line of events has t, in seconds since the scenario's beginning, and kind (engine.Kind); then, as the kind has
// them, job, running, nodes and from (null if unknown), all of them numbers that scene.json explains:
//
//	{"t":60,"kind":"started","job":3,"nodes":[4,5,6,7]}
//
// The log has neither wall time nor names of machines: equal scenarios, seeds and schedulers give equal bytes.
//
// # Whole or partial
//
// The first thing that Create writes is a scorecard that is partial, and the last thing that Finish does is to rename a
// whole one over it. In between the mark stands, so that a run which was interrupted or killed, or whose disk was full,
// is never taken for a whole one. The events of such a run can still be read.
package results
