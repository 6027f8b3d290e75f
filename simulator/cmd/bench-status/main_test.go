package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// Flags with which there is nothing to measure are refused before a cluster starts.
func TestRun_RefusesFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"-jobs=4000,1000": "-jobs=4000,1000: must be numbers that grow",
		"-jobs=few":       "-jobs=few: must be numbers that grow",
		"-jobs=0":         "-jobs=0: must be numbers that grow",
		"-for=1ms":        "-for must be at least 1s",
		"-every=0s":       "-every above 0",
		"-often":          "reading the flags",
	} {
		if err := run(t.Context(), []string{flags}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}

// A second's use of two components is read as cores, and this process has used some.
func TestProcessors_Since(t *testing.T) {
	before := processors{"etcd": 1, "generator": 10}
	cores := before.since(processors{"etcd": 1.5, "generator": 14}, 2)
	if cores["etcd"] != 0.25 || cores["generator"] != 2 {
		t.Errorf("%v, want a quarter and two cores", cores)
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc")
	}
	if used := processorTime(1); used < 0 {
		t.Errorf("the first process has used %v s", used)
	}
	if used := processorTime(-1); used != 0 {
		t.Errorf("a process that does not exist has used %v s", used)
	}
}
