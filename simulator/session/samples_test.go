package session_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/simulator/session"
	"github.com/lockstep-project/lockstep/simulator/workload"
)

// A runtime that ships without a sample is one that nobody has seen complete.
func TestEveryShippedRuntimeHasASample(t *testing.T) {
	runtimes, err := session.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := workload.Load([]string{"../../manifests/samples"})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, object := range samples.Objects {
		if object.Object.GetKind() == workload.KindTrainJob {
			used[workload.RuntimeOf(object.Object).Name] = true
		}
	}
	for _, runtime := range runtimes {
		if !used[runtime.GetName()] {
			t.Errorf("no sample uses runtime %s", runtime.GetName())
		}
	}
}
