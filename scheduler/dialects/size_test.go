package dialects_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// kinds are the kinds whose pods are gangs, each with a scene in testdata (FILE/NAME) that shows its reading.
func kinds() map[string]string {
	return map[string]string{
		"PodGroup v1alpha2":      "native/v1alpha2",
		"PodGroup v1beta1":       "native/v1beta1, before another mark",
		"scheduler-plugins":      "scheduler-plugins/PodGroup of a user",
		"TrainJob":               "scheduler-plugins/TrainJob",
		"MPIJob":                 "scheduler-plugins/MPIJob",
		"RayCluster":             "scheduler-plugins/RayCluster",
		"SparkApplication":       "scheduler-plugins/SparkApplication",
		"PyTorchJob":             "scheduler-plugins/PyTorchJob",
		"TFJob":                  "scheduler-plugins/TFJob",
		"Kueue's plain pods":     "kueue/plain pods",
		"LeaderWorkerSet":        "leaderworkerset/a worker",
		"JobSet":                 "jobset/all at once",
		"Job":                    "job/a Job that says so",
		"Volcano":                "volcano/a task",
		"KAI":                    "kai/with a place that is required",
		"Grove's PodGang":        "grove/cliques of pods",
		"YuniKorn":               "yunikorn/two task groups",
		"Koordinator":            "koordinator/bare pods by annotations",
		"Alibaba's coscheduling": "ack/by labels",
		"Armada":                 "armada/in one domain",
		"StatefulSet":            "statefulset/one that says so",
	}
}

// Twenty kinds have a scene.
func TestKinds(t *testing.T) {
	const least = 20
	if len(kinds()) < least {
		t.Errorf("%d kinds, want %d", len(kinds()), least)
	}
	for kind, scene := range kinds() {
		file, name, _ := strings.Cut(scene, "/")
		if !slices.Contains(scenesOf(t, file), name) {
			t.Errorf("%s has no scene %q in %s.yaml, which has %q", kind, name, file, scenesOf(t, file))
		}
	}
}

// scenesOf returns the names of a file's scenes.
func scenesOf(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var scenes []scene
	if err := yaml.Unmarshal(content, &scenes); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range scenes {
		names = append(names, s.Name)
	}
	return names
}

// Dialects stay small: sixty lines for one in Go, and twelve hundred for all kinds with their shared code.
func TestDialects_AreSmall(t *testing.T) {
	const most, mostOfAll = 60, 1200
	written := []string{"native.go", "schedulerplugins.go", "kueue.go", "leaderworkerset.go", "jobset.go", "job.go"}
	all := 0
	for _, pattern := range []string{"*.go", filepath.Join(rows, "*.yaml")} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files %s (%v)", len(files), pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.Count(content, []byte("\n"))
			all += lines
			if slices.Contains(written, file) && lines > most {
				t.Errorf("%s has %d lines, want at most %d", file, lines, most)
			}
		}
	}
	if all > mostOfAll {
		t.Errorf("all dialects have %d lines, want at most %d", all, mostOfAll)
	}
}
