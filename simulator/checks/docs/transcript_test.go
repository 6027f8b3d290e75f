package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTranscript_HasTheSamples holds the recorded run of make run to the samples: each of their jobs is in it once, and
// completed. To record it again: make run > docs/examples/up.txt, without make's own output.
func TestTranscript_HasTheSamples(t *testing.T) {
	table, _, _ := strings.Cut(text(t, "docs/examples/up.txt"), "\n\n")
	var recorded []string
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if words[0] == "JOB" {
			continue
		}
		recorded = append(recorded, words[0])
		if words[len(words)-1] != "Complete" {
			t.Errorf("the recorded run has a job that did not complete: %s", line)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "manifests/samples/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	job := regexp.MustCompile(`(?m)^kind: TrainJob\nmetadata:\n  name: (\S+)`)
	var samples []string
	for _, file := range files {
		for _, found := range job.FindAllStringSubmatch(text(t, strings.TrimPrefix(file, root+"/")), -1) {
			samples = append(samples, found[1])
		}
	}
	slices.Sort(samples)
	slices.Sort(recorded)
	if !slices.Equal(samples, recorded) {
		t.Errorf("docs/examples/up.txt has jobs %v, and the samples are %v; record it again", recorded, samples)
	}
}
