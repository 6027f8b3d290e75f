package trace

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// philly reads Microsoft's list of jobs of 2017: a CSV file, compressed if its name ends in .gz. Its columns are named
// timestamp, duration, num_gpus and cluster, in any order; others are ignored. A file that cannot be used is bad input.
//
// A job is a gang of ⌈n/8⌉ pods of min(n, 8) GPUs of the tenant that cluster names. Instants are local wall clock,
// taken as if it had never been put back. The jobs' end states and their queue are not in this list.
func philly(path string) (Trace, error) {
	return open(path, ReadPhilly)
}

// ReadPhilly is Philly of text that was read elsewhere; file is its name in errors.
func ReadPhilly(in io.Reader, file string) (Trace, error) {
	t, err := newTable(in, file, "timestamp", "duration", "num_gpus", "cluster")
	if err != nil {
		return Trace{}, err
	}
	trace := Trace{Name: "philly"}
	var submitted []time.Time
	for t.next() {
		gpus := t.number("num_gpus", MostPods)
		if gpus == 0 {
			t.refuse("the job asks for no GPU", "set num_gpus to 1 or more, or remove the row")
		}
		submitted = append(submitted, t.wallClock("timestamp"))
		trace.Jobs = append(trace.Jobs, Job{
			ID:       fmt.Sprintf("philly-%06d", len(trace.Jobs)+1),
			Tenant:   t.text("cluster"),
			Duration: t.seconds("duration"),
			Podsets:  gang(int(gpus)),
		})
	}
	if err := t.fault("a job"); err != nil {
		return Trace{}, err
	}
	since(trace.Jobs, submitted)
	trace.Source = fmt.Sprintf("Philly (Jeon et al., ATC '19; CC-BY-4.0): %d jobs", len(trace.Jobs))
	return trace.sorted(), nil
}

// since makes the earliest of the instants the beginning of the trace.
func since(jobs []Job, submitted []time.Time) {
	begin := submitted[0]
	for _, at := range submitted {
		if at.Before(begin) {
			begin = at
		}
	}
	for i, at := range submitted {
		jobs[i].Submit = at.Sub(begin)
	}
}

// wallClock is a field with an instant such as 2017-10-09 07:01:55, of the years in which GPUs were shared.
func (t *table) wallClock(column string) time.Time {
	text := t.text(column)
	at, err := time.Parse(time.DateTime, text)
	if err != nil || at.Year() < 2000 || at.Year() >= 2100 {
		t.refuse(fmt.Sprintf("%s is %q", column, text), "write an instant such as 2017-10-09 07:01:55")
	}
	return at
}

// seconds is a field with a duration above zero, rounded to milliseconds.
func (t *table) seconds(column string) time.Duration {
	text := t.text(column)
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s >= 0.001 && s <= MostTime.Seconds()) {
		t.refuse(fmt.Sprintf("%s is %q", column, text), "write a number of seconds above 0, such as 66.0")
		return 0
	}
	return time.Duration(math.Round(s*1000)) * time.Millisecond
}
