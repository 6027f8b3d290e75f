package trace

import (
	"fmt"
	"slices"
	"time"
)

// refusal is the fault of a row and its remedy; the zero value is none.
type refusal struct {
	what, mend string
}

// check finds the first thing about the job that cannot be.
func (j Job) check() refusal {
	if j.ID == "" {
		return refusal{"the job has no id", "give it one of its own"}
	}
	if r := checkInstant("submit", j.Submit); r != (refusal{}) {
		return r
	}
	switch {
	case j.Duration <= 0 || j.Duration > MostTime:
		return refusal{
			fmt.Sprintf("the duration of job %s is %s", j.ID, j.Duration), "write one above 0, of at most 100 years",
		}
	case j.Estimate < 0 || j.Estimate > MostTime:
		return refusal{
			fmt.Sprintf(
				"the estimate of job %s is %s",
				j.ID,
				j.Estimate,
			),
			"write one of at most 100 years, or leave it out",
		}
	case j.Grace < 0 || j.Grace > MostTime:
		return refusal{
			fmt.Sprintf("the grace of job %s is %s", j.ID, j.Grace), "write one of at most 100 years, or leave it out",
		}
	case !slices.Contains([]EndState{EndUnknown, Completed, Canceled, Failed}, j.EndState):
		return refusal{
			fmt.Sprintf(
				"job %s ended %q",
				j.ID,
				string(j.EndState),
			),
			"write completed, canceled or failed, or leave it out",
		}
	}
	if r := j.checkPods(); r != (refusal{}) {
		return r
	}
	return j.checkWishes()
}

func (j Job) checkPods() refusal {
	if len(j.Podsets) == 0 {
		return refusal{fmt.Sprintf("job %s has no pods", j.ID), `write such as "pods": [{"count": 1, "gpus": 8}]`}
	}
	left := MostPods
	for i, set := range j.Podsets {
		switch {
		case set.Count < 1 || set.Count > left:
			return refusal{
				fmt.Sprintf("job %s has a count of %d pods", j.ID, set.Count),
				fmt.Sprintf("write 1 or more, and at most %d in all", MostPods),
			}
		case set.Min < 0 || set.Min > set.Count:
			return refusal{
				fmt.Sprintf("job %s has a count of %d pods and a min of %d", j.ID, set.Count, set.Min),
				"write at most as many as the count, or leave it out",
			}
		case set.Min > 0 && (i < len(j.Podsets)-1 || j.MinCount > 0):
			return refusal{
				fmt.Sprintf("job %s has a min of %d where it cannot be", j.ID, set.Min),
				"write it at the last of the pods, and no minCount",
			}
		case set.GPUs < 0 || set.GPUs > MostGPUs:
			return refusal{
				fmt.Sprintf("a pod of job %s asks for %d GPUs", j.ID, set.GPUs),
				fmt.Sprintf("write 0 to %d; gpus are those of one pod", MostGPUs),
			}
		case set.CPU < 0 || set.CPU > mostMilliCPU:
			return refusal{
				fmt.Sprintf("a pod of job %s asks for a cpuMilli of %d", j.ID, set.CPU),
				fmt.Sprintf("write 0 to %d thousandths of a core", mostMilliCPU),
			}
		case set.Memory < 0 || set.Memory > mostMiB<<20:
			return refusal{
				fmt.Sprintf("a pod of job %s asks for a memoryBytes of %d", j.ID, set.Memory),
				fmt.Sprintf("write 0 to %d bytes", int64(mostMiB<<20)),
			}
		}
		left -= set.Count
	}
	return refusal{}
}

// mostName bounds the length of the name of a sweep, as that of the value of a label.
const mostName = 63

func (j Job) checkWishes() refusal {
	pods := j.Pods()
	switch {
	case j.Parallelism < 0:
		return refusal{
			fmt.Sprintf("job %s has a parallelism of %d", j.ID, j.Parallelism), "write 1 or more, or leave it out",
		}
	case j.Parallelism > 0 && j.Sweep == "":
		return refusal{
			fmt.Sprintf("job %s has a parallelism of %d and no sweep", j.ID, j.Parallelism),
			"name its sweep, or leave the parallelism out",
		}
	case len(j.Sweep) > mostName:
		return refusal{
			fmt.Sprintf("the sweep of job %s has a name of %d characters", j.ID, len(j.Sweep)),
			fmt.Sprintf("write at most %d", mostName),
		}
	case j.MinCount < 0 || j.MinCount > pods:
		return refusal{
			fmt.Sprintf("job %s has %d pods and a minCount of %d", j.ID, pods, j.MinCount),
			"write at most as many as there are pods, or leave it out",
		}
	case j.Segment != Segment{} && (j.Segment.Size < 1 || j.Segment.Size > pods || j.Segment.Level == ""):
		return refusal{
			fmt.Sprintf("job %s has %d pods and segments of %d in %q", j.ID, pods, j.Segment.Size, j.Segment.Level),
			"write a size of at most as many as there are pods and a level, or leave the segment out",
		}
	}
	return refusal{}
}

// check finds the first thing about the event that cannot be.
func (e Event) check() refusal {
	if r := checkInstant("at", e.At); r != (refusal{}) {
		return r
	}
	switch {
	case !slices.Contains([]Kind{Fail, Drain, Return}, e.Kind):
		return refusal{fmt.Sprintf("the event's kind is %q", string(e.Kind)), "write fail, drain or return"}
	case len(e.Nodes) == 0 || slices.Contains(e.Nodes, ""):
		return refusal{"the event names no node, or one without a name", `write such as "nodes": ["node-1"]`}
	}
	return refusal{}
}

func checkInstant(field string, at time.Duration) refusal {
	if at < 0 || at > MostTime {
		return refusal{
			fmt.Sprintf(
				"%s is %s",
				field,
				at,
			),
			"write a duration since the beginning of the trace, of at most 100 years",
		}
	}
	return refusal{}
}

// fate is the last event of a node; a node without events is there.
type fate map[string]Kind

// happens records an event, and refuses one that is impossible after the earlier events of a node.
func (f fate) happens(e Event) refusal {
	for _, node := range e.Nodes {
		last, changed := f[node]
		gone := changed && last != Return
		switch {
		case e.Kind == Return && !gone:
			return refusal{
				fmt.Sprintf("%s returns at %s and is there already", node, e.At), "let it fail or be drained before",
			}
		case e.Kind != Return && gone && (last == Fail || e.Kind == Drain):
			return refusal{
				fmt.Sprintf("%s is gone already at %s, by the event %s", node, e.At, last), "let it return before",
			}
		}
		f[node] = e.Kind
	}
	return refusal{}
}
