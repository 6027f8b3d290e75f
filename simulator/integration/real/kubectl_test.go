package real_test

import (
	"os"
	"path/filepath"
	"testing"
)

// Rendered manifests can be applied by kubectl alone, and a second time without a difference, after the CRDs; and all
// of them can be deleted.
func TestManifests_KubectlAppliesTwice(t *testing.T) {
	manifests, crds := filepath.Join(t.TempDir(), "manifests.yaml"), filepath.Join(t.TempDir(), "crds.yaml")
	for file, args := range map[string][]string{manifests: {"manifests"}, crds: {"crds"}} {
		if err := os.WriteFile(file, []byte(lockstep(t, args...)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kubectl(t, "delete", "--ignore-not-found", "-f", crds)
	kubectl(t, "apply", "-f", crds)
	kubectl(t, "wait", "--for=condition=Established", "-f", crds)
	kubectl(t, "apply", "-f", manifests)
	kubectl(t, "-n", namespace(), "rollout", "status", "--timeout=2m", "deployment/lockstep-scheduler")
	kubectl(t, "-n", namespace(), "rollout", "status", "--timeout=2m", "deployment/lockstep-controller")
	// kubectl calls objects "configured" if the API server fills defaults into their lists; the generation shows
	// whether anything has changed.
	generations := []string{
		"get",
		"-f",
		manifests,
		"-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation}{"\n"}{end}`,
	}
	before := kubectl(t, generations...)
	kubectl(t, "apply", "-f", manifests)
	if after := kubectl(t, generations...); after != before {
		t.Errorf("applied a second time, it is\n%swas\n%s", after, before)
	}
	kubectl(t, "diff", "-f", manifests)
	kubectl(t, "delete", "--ignore-not-found", "-f", manifests, "--timeout=2m")
}
