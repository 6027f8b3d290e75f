package session_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/simulator/session"
	"github.com/lockstep-project/lockstep/simulator/workload"
)

// What plays with --kueue is refused by nobody before Kueue sees it.
func TestTheSamplesOfTheQueueCanBeSubmitted(t *testing.T) {
	runtimes, err := session.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := workload.Load([]string{"../../manifests/samples-kueue"})
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Check(samples, runtimes); err != nil {
		t.Error(err)
	}
	for _, job := range samples.TrainJobs() {
		if job.Object.GetLabels()["kueue.x-k8s.io/queue-name"] == "" {
			t.Errorf("%s names no queue", job)
		}
	}
}

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
