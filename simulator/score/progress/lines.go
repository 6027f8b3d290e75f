package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// lines shows a line for each run, each time.
type lines struct {
	out    io.Writer
	write  func(*View) (string, error)
	failed error
}

func (l *lines) show(now, ends []View) {
	for _, views := range [][]View{ends, now} {
		for i := range views {
			if l.failed != nil {
				return
			}
			line, err := l.write(&views[i])
			if err == nil {
				_, err = io.WriteString(l.out, line+"\n")
			}
			if err != nil {
				l.failed = fmt.Errorf("writing how far the run is: %w", err)
			}
		}
	}
}

func (l *lines) close() error { return l.failed }

// plainLine formats a view for readers of a log:
//
//	lockstep/1 (2 of 9): t=3d04h jobs 41% (41,000 of 100,000), 1.2M ev/s, alloc 91.2%, waiting 17 gangs 512 GPUs, p99 8.1ms
func plainLine(v *View) (string, error) {
	line := fmt.Sprintf("%st=%s jobs %d%% (%s of %s), %s ev/s, alloc %.1f%%, waiting %s %s, p99 %s",
		prefix(v), span(v.Virtual), percent(v.Ended, v.Jobs), grouped(v.Ended), grouped(v.Jobs), short(v.events),
		100*v.Allocation(), counted(v.Waiting, "gang"), counted(v.WaitingGPUs, "GPU"), latency(v.P99))
	if v.Over {
		line += ", over after " + span(v.Wall)
	} else if left, ok := v.Left(); ok {
		line += ", about " + span(max(left, time.Second)) + " left"
	}
	return line, nil
}

// prefix names the run where there are several, or where it has a name.
func prefix(v *View) string {
	if of := title(v); of != "" {
		return of + ": "
	}
	return ""
}

// title is the run's name, its number and the number of runs.
func title(v *View) string {
	switch {
	case v.Runs == 1:
		return printable(v.Name)
	case v.Name == "":
		return fmt.Sprintf("%d of %d", v.Number, v.Runs)
	}
	return fmt.Sprintf("%s (%d of %d)", printable(v.Name), v.Number, v.Runs)
}

// jsonLine is a view for programs. Names of its fields are a contract; durations are seconds, unless their name says
// something else.
func jsonLine(v *View) (string, error) {
	line := struct {
		Run              string   `json:"run,omitempty"`
		Number           int      `json:"number"`
		Runs             int      `json:"runs"`
		Virtual          float64  `json:"virtual_seconds"`
		Wall             float64  `json:"wall_seconds"`
		Left             *float64 `json:"left_seconds,omitempty"`
		Jobs             int      `json:"jobs"`
		Submitted        int      `json:"submitted"`
		Ended            int      `json:"ended"`
		Running          int      `json:"running"`
		Waiting          int      `json:"waiting"`
		WaitingGPUs      int64    `json:"waiting_gpus"`
		LargestWaiting   int64    `json:"largest_waiting_gpus"`
		OldestWait       float64  `json:"oldest_wait_seconds"`
		GPUs             int64    `json:"gpus"`
		GPUsInUse        int64    `json:"gpus_in_use"`
		Events           uint64   `json:"events"`
		EventsPerSecond  float64  `json:"events_per_second"`
		Speed            float64  `json:"speed"`
		Pods             uint64   `json:"pods_started"`
		Decisions        uint64   `json:"decisions"`
		DecisionP50Milli float64  `json:"decision_ms_p50"`
		DecisionP99Milli float64  `json:"decision_ms_p99"`
		Over             bool     `json:"over"`
	}{
		Run: v.Name, Number: v.Number, Runs: v.Runs, Virtual: v.Virtual.Seconds(), Wall: v.Wall.Seconds(), Jobs: v.Jobs,
		Submitted: v.Submitted, Ended: v.Ended, Running: v.Running, Waiting: v.Waiting, WaitingGPUs: v.WaitingGPUs,
		LargestWaiting: v.LargestWaiting, OldestWait: v.OldestWait.Seconds(), GPUs: v.GPUs, GPUsInUse: v.GPUsInUse,
		Events: v.Events, EventsPerSecond: v.events, Speed: v.speed, Pods: v.Pods, Decisions: v.Decisions,
		DecisionP50Milli: milli(v.P50), DecisionP99Milli: milli(v.P99), Over: v.Over,
	}
	if left, ok := v.Left(); ok {
		line.Left = new(left.Seconds())
	}
	b, err := json.Marshal(line)
	if err != nil {
		return "", fmt.Errorf("encoding how far the run is: %w", err)
	}
	return string(b), nil
}

func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
