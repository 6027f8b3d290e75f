package topology

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ExitAction is the effect of a rank's exit code on its gang.
type ExitAction string

const (
	// ExitRetry starts all ranks again, and counts as a restart. It is the action of codes that are not named.
	ExitRetry ExitAction = "retry"
	// ExitFatal fails the job.
	ExitFatal ExitAction = "fatal"
	// ExitOtherNode is ExitRetry, and bars the gang from the rank's node for a while.
	ExitOtherNode ExitAction = "other-node"
)

// mostExitCodes is the largest number of named codes: Kubernetes' limit for a rule of a Job.
const mostExitCodes = 255

// ExitCodes maps the exit codes from 1 to 255 to actions. The zero value retries all.
type ExitCodes struct {
	actions map[int32]ExitAction
	// others is the action of codes that are not named, "" for ExitRetry.
	others ExitAction
}

// ParseExitCodes reads the value of AnnotationExitCodes: entries code=action or first-last=action, separated by commas,
// with * for all codes that are not named. No code may be named twice.
//
//	3=fatal, 40-44=retry, 137=other-node, *=fatal
func ParseExitCodes(text string) (ExitCodes, error) {
	codes := ExitCodes{actions: make(map[int32]ExitAction)}
	for entry := range strings.SplitSeq(text, ",") {
		which, name, ok := strings.Cut(strings.TrimSpace(entry), "=")
		action := ExitAction(name)
		if !ok || !slices.Contains([]ExitAction{ExitRetry, ExitFatal, ExitOtherNode}, action) {
			return ExitCodes{}, fmt.Errorf(
				"%q is not code=%s, code=%s or code=%s",
				entry,
				ExitRetry,
				ExitFatal,
				ExitOtherNode,
			)
		}
		if which == "*" {
			if codes.others != "" {
				return ExitCodes{}, errors.New("* is there twice")
			}
			codes.others = action
			continue
		}
		first, last, err := exitRange(which)
		if err != nil {
			return ExitCodes{}, err
		}
		for code := first; code <= last; code++ {
			if _, twice := codes.actions[code]; twice {
				return ExitCodes{}, fmt.Errorf("exit code %d is there twice", code)
			}
			codes.actions[code] = action
		}
	}
	return codes, nil
}

// exitRange reads a code or first-last.
func exitRange(text string) (first, last int32, err error) {
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	if first, err = exitCode(from); err != nil {
		return 0, 0, err
	}
	if last, err = exitCode(to); err != nil {
		return 0, 0, err
	}
	if first > last {
		return 0, 0, fmt.Errorf("%q begins above its end", text)
	}
	return first, last, nil
}

func exitCode(text string) (int32, error) {
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil || number < 1 || number > mostExitCodes {
		return 0, fmt.Errorf("%q is no exit code from 1 to %d", text, mostExitCodes)
	}
	return int32(number), nil
}

// Action returns the action for an exit code other than 0.
func (e ExitCodes) Action(code int32) ExitAction {
	if action, ok := e.actions[code]; ok {
		return action
	}
	if e.others != "" {
		return e.others
	}
	return ExitRetry
}

// Fatal returns the codes that are fatal, ascending; or, if all that are not named are fatal, those that are not, with
// others set.
func (e ExitCodes) Fatal() (codes []int32, others bool) {
	others = e.others == ExitFatal
	for code, action := range e.actions {
		if (action == ExitFatal) != others {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes, others
}
