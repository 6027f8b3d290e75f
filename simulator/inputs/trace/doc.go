// Package trace reads and makes workloads as values. Published lists are read as they stand; other packages use openb's
// rows. All other workloads become one Trace: jobs that arrive one after another, and the events of nodes meanwhile. A
// row that cannot be used is bad input (badinput), with its file and line.
//
//	t, err := trace.Open("philly", 0)
//	t, err = trace.Compress(t, 1.3) // submissions arrive 1.3 times as fast
//
// Several seeds of a recorded list are its weeks drawn with replacement (Resample), so that they show how much a result
// depends on the recorded weeks; seed 0 is the record.
//
// Random draws depend on the seed alone, and no decision depends on a rounding that may differ between machines: equal
// names and seeds give equal traces everywhere.
//
// # The project's own format
//
// A JSONL file has one JSON object a line, with one key: trace, job or event. Lines of jobs and events may be in any
// order. Fields that are not listed here are refused, and all but those marked * may be left out. Durations are written
// as in Go, such as "90s" or "26h30m"; instants are durations since the beginning of the trace.
//
//	{"trace": {"name": "nightly", "source": "who made it, and its license", "synthetic": false}}
//	{"job": {"id": "a-1", "tenant": "research", "submit": "90s", "duration": "2h",
//	         "pods": [{"count": 16, "gpus": 8, "cpuMilli": 64000, "memoryBytes": 549755813888}],
//	         "minCount": 12, "priority": 100, "preemptible": true, "grace": "5m", "required": "block", "preferred": "rack",
//	         "segment": {"size": 4, "level": "rack"}, "estimate": "3h", "endState": "completed"}}
//	{"event": {"at": "5h", "kind": "fail", "nodes": ["node-17"]}}
//
// The line of the trace is the first, if it is there (*name). A job (*id, *duration, *pods with *count) is described at
// Job, an event (*kind, *nodes) at Event.
//
// A trial names its sweep, and the number of trials of that sweep that may run at a time:
//
//	{"job": {"id": "lr-7", "tenant": "vision", "duration": "40m", "pods": [{"count": 2, "gpus": 8}], "sweep": "lr", "parallelism": 8}}
//
// An elastic job has a min at the last of its pods, and no minCount: at least so many of these start, as many as fit
// do, and the others join them while the job runs. Schedulers that do not know elastic jobs place all pods.
//
//	{"job": {"id": "a-2", "duration": "8h", "pods": [{"count": 1}, {"count": 16, "min": 4, "gpus": 8}]}}
package trace
