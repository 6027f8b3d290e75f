package scheduler_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The scheduler is compiled from Kubernetes' own source, whose 33 staging modules must all be of its release: go.mod
// cannot say so, and a mixture compiles more often than it works.
func TestGoMod_KubernetesModulesAreOneRelease(t *testing.T) {
	const release, staged = "v1.37.2", "v0.37.2"
	content, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), "k8s.io/kubernetes "+release) {
		t.Errorf("go.mod does not require k8s.io/kubernetes %s", release)
	}
	line := regexp.MustCompile(`(?m)^(?:replace\s+|\s+)(k8s\.io/\S+)(?: \S+)? => (\S+) (\S+)$`)
	replaced := line.FindAllStringSubmatch(string(content), -1)
	if len(replaced) != 33 {
		t.Errorf("go.mod replaces %d modules of Kubernetes, want 33", len(replaced))
	}
	for _, r := range replaced {
		if r[1] != r[2] || r[3] != staged {
			t.Errorf("go.mod replaces %s by %s %s, want itself at %s", r[1], r[2], r[3], staged)
		}
	}
}
