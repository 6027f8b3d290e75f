package trace

import (
	"fmt"
	"time"
)

// jsonLine is a line of a file in the project's own format. One of its keys is there.
type jsonLine struct {
	Trace *jsonTrace `json:"trace,omitempty"`
	Job   *jsonJob   `json:"job,omitempty"`
	Event *jsonEvent `json:"event,omitempty"`
}

type jsonTrace struct {
	Name      string `json:"name"`
	Source    string `json:"source,omitempty"`
	Synthetic bool   `json:"synthetic,omitempty"`
}

type jsonEvent struct {
	At    span     `json:"at"`
	Kind  Kind     `json:"kind"`
	Nodes []string `json:"nodes"`
}

type jsonJob struct {
	ID          string       `json:"id"`
	Tenant      string       `json:"tenant,omitempty"`
	Submit      span         `json:"submit"`
	Duration    span         `json:"duration"`
	Pods        []jsonPods   `json:"pods"`
	MinCount    int          `json:"minCount,omitempty"`
	Priority    int32        `json:"priority,omitempty"`
	Preemptible bool         `json:"preemptible,omitempty"`
	Grace       span         `json:"grace,omitempty"`
	Required    string       `json:"required,omitempty"`
	Preferred   string       `json:"preferred,omitempty"`
	Segment     *jsonSegment `json:"segment,omitempty"`
	Estimate    span         `json:"estimate,omitempty"`
	EndState    EndState     `json:"endState,omitempty"`
	Sweep       string       `json:"sweep,omitempty"`
	Parallelism int          `json:"parallelism,omitempty"`
}

type jsonPods struct {
	Count       int   `json:"count"`
	Min         int   `json:"min,omitempty"`
	GPUs        int   `json:"gpus,omitempty"`
	CPUMilli    int64 `json:"cpuMilli,omitempty"`
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
}

type jsonSegment struct {
	Size  int    `json:"size"`
	Level string `json:"level"`
}

func jsonOfJob(j Job) *jsonJob {
	row := &jsonJob{
		ID: j.ID, Tenant: j.Tenant, Submit: span(j.Submit), Duration: span(j.Duration), MinCount: j.MinCount,
		Priority: j.Priority, Preemptible: j.Preemptible, Required: j.Required, Preferred: j.Preferred,
		Estimate: span(j.Estimate), EndState: j.EndState, Grace: span(j.Grace),
		Sweep: j.Sweep, Parallelism: j.Parallelism,
	}
	for _, set := range j.Podsets {
		row.Pods = append(row.Pods, jsonPods{set.Count, set.Min, set.GPUs, set.CPU, set.Memory})
	}
	if j.Segment != (Segment{}) {
		row.Segment = &jsonSegment{j.Segment.Size, j.Segment.Level}
	}
	return row
}

func (row jsonJob) job() Job {
	j := Job{
		ID: row.ID, Tenant: row.Tenant, Submit: row.Submit.duration(), Duration: row.Duration.duration(),
		MinCount: row.MinCount, Priority: row.Priority, Preemptible: row.Preemptible, Required: row.Required,
		Preferred: row.Preferred, Estimate: row.Estimate.duration(), EndState: row.EndState,
		Grace: row.Grace.duration(), Sweep: row.Sweep, Parallelism: row.Parallelism,
	}
	for _, set := range row.Pods {
		j.Podsets = append(j.Podsets, Podset{set.Count, set.Min, set.GPUs, set.CPUMilli, set.MemoryBytes})
	}
	if row.Segment != nil {
		j.Segment = Segment{row.Segment.Size, row.Segment.Level}
	}
	return j
}

// span is a duration that is written as Go writes it.
type span time.Duration

func (s span) duration() time.Duration {
	return time.Duration(s)
}

// MarshalText returns the text in a file.
func (s span) MarshalText() ([]byte, error) {
	return []byte(s.duration().String()), nil
}

// UnmarshalText reads a duration; other text is a spanError.
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return &spanError{string(text)}
	}
	*s = span(d)
	return nil
}

type spanError struct {
	text string
}

func (e *spanError) Error() string {
	return fmt.Sprintf("%q is no duration", e.text)
}
