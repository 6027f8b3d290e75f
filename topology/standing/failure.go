package standing

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// RankFailed is the condition of a PodGroup that reports the last failure of one of its ranks; it stays when the gang
// starts again. The message is a Failure, LastTransitionTime the time of the failure.
const RankFailed = "lockstep.dev/RankFailed"

// TakenAway is the condition of a pod, not of a PodGroup, that its own Job deletes because it was suspended. The pod's
// exit code means nothing then, but Kubernetes applies a Job's rules for exit codes all the same, unless another rule
// ignores such pods.
const TakenAway = "lockstep.dev/TakenAway"

// RankFailedReason is the reason of the Event about it.
const RankFailedReason = "RankFailed"

// Failure is the first failure of a rank in a run of its gang.
type Failure struct {
	// Rank is the completion index of the pod, -1 for a pod without one.
	Rank int
	// Pod and Node are names.
	Pod, Node string
	// Container is the container that failed, "" if none did: then Reason is the cause of the pod's failure.
	Container string
	// ExitCode is that of the container.
	ExitCode int32
	// Reason is the pod's or the container's: one CamelCase word, such as OutOfcpu or OOMKilled; "" for none.
	Reason string
	// Message is the end of the container's log, or of its termination message; "" for none.
	Message string
}

// String prints the failure: "rank 3 (pod train-node-0-3-x7k2p on node n17): container node ended with exit code 1
// (Error): ValueError: no data".
func (f Failure) String() string {
	var b strings.Builder
	if f.Rank >= 0 {
		fmt.Fprintf(&b, "rank %d (pod %s on node %s): ", f.Rank, f.Pod, f.Node)
	} else {
		fmt.Fprintf(&b, "pod %s on node %s: ", f.Pod, f.Node)
	}
	if f.Container == "" {
		b.WriteString("failed")
	} else {
		fmt.Fprintf(&b, "container %s ended with exit code %d", f.Container, f.ExitCode)
	}
	if f.Reason != "" {
		fmt.Fprintf(&b, " (%s)", f.Reason)
	}
	if f.Message != "" {
		b.WriteString(": " + f.Message)
	}
	return b.String()
}

// failureText matches the output of Failure.String.
var failureText = regexp.MustCompile(
	`(?s)^(?:rank (\d+) \(pod (\S+) on node (\S+)\)|pod (\S+) on node (\S+)): ` +
		`(?:failed|container (\S+) ended with exit code (-?\d+))(?: \((\S+)\))?(?:: (.+))?$`,
)

// ParseFailure parses the output of String.
func ParseFailure(text string) (Failure, error) {
	parts := failureText.FindStringSubmatch(text)
	if parts == nil {
		return Failure{}, fmt.Errorf(
			"%q is no failure: want \"rank N (pod P on node N): container C ended with exit code E\"",
			text,
		)
	}
	f := Failure{
		Rank:      -1,
		Pod:       parts[2] + parts[4],
		Node:      parts[3] + parts[5],
		Container: parts[6],
		Reason:    parts[8],
		Message:   parts[9],
	}
	if parts[1] != "" {
		rank, err := strconv.Atoi(parts[1])
		if err != nil {
			return Failure{}, fmt.Errorf("%q is no failure: %w", text, err)
		}
		f.Rank = rank
	}
	if parts[7] != "" {
		code, err := strconv.ParseInt(parts[7], 10, 32)
		if err != nil {
			return Failure{}, fmt.Errorf("%q is no failure: %w", text, err)
		}
		f.ExitCode = int32(code)
	}
	return f, nil
}
