package badinput_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

func TestError_IsOneLine(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  *badinput.Error
		want string
	}{
		{
			name: "file and line",
			err:  badinput.At("jobs.yaml", 12, "TrainJob train has no runtimeRef", "name a runtime"),
			want: "jobs.yaml:12: TrainJob train has no runtimeRef; name a runtime",
		},
		{
			name: "whole file",
			err:  badinput.At("jobs.yaml", 0, "nothing in it", "write a TrainJob"),
			want: "jobs.yaml: nothing in it; write a TrainJob",
		},
		{
			name: "nothing to mend",
			err:  badinput.At("jobs.yaml", 3, "no such thing", ""),
			want: "jobs.yaml:3: no such thing",
		},
		{
			name: "no place",
			err:  &badinput.Error{What: "no jobs", Mend: "pass --jobs"},
			want: "no jobs; pass --jobs",
		},
		{
			name: "parts that break lines",
			err:  badinput.At("a.yaml", 1, "errors:\n  line 4: twice\n", "mend\tit"),
			want: "a.yaml:1: errors: line 4: twice; mend it",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.err.Error(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestIs_SeesThroughWrapping(t *testing.T) {
	wrapped := fmt.Errorf("reading the fleet: %w", badinput.At("f.yaml", 1, "what", "mend"))
	if !badinput.Is(wrapped) {
		t.Error("a wrapped bad input was not recognized")
	}
	if badinput.Is(errors.New("disk on fire")) || badinput.Is(nil) {
		t.Error("something else was taken for bad input")
	}
}
