package liverun_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/simulator/live/liverun"
)

// Jobs that run with --kueue are not refused by any webhook before Kueue sees them.
func TestSamples_ForKueueCanBeSubmitted(t *testing.T) {
	runtimes, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := workload.Load([]string{"../../../manifests/samples-kueue"})
	if err != nil {
		t.Fatal(err)
	}
	if err := liverun.Check(samples, runtimes); err != nil {
		t.Error(err)
	}
	for _, job := range samples.TrainJobs() {
		if job.Object.GetLabels()["kueue.x-k8s.io/queue-name"] == "" {
			t.Errorf("%s names no queue", job)
		}
	}
}

// The samples for machines with devices name the fleet that they fit, and bring the templates of the claims that they
// name.
func TestSamples_WithDevicesCanBeSubmitted(t *testing.T) {
	runtimes, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := workload.Load([]string{"../../../manifests/samples-devices"})
	if err != nil {
		t.Fatal(err)
	}
	if err := liverun.Check(samples, runtimes); err != nil {
		t.Error(err)
	}
	templates := map[string]bool{}
	for _, object := range samples.Objects {
		if object.Object.GetKind() == "ResourceClaimTemplate" {
			templates[object.Object.GetName()] = true
		}
	}
	for _, job := range samples.TrainJobs() {
		claims, _, _ := unstructured.NestedSlice(job.Object.Object, "spec", "trainer", "resourceClaimsPerNode")
		if len(claims) != 1 || !templates[claims[0].(map[string]any)["resourceClaimTemplateName"].(string)] {
			t.Errorf("%s claims %v, and there are templates %v", job, claims, templates)
		}
	}
}

// The samples for TPUs ask for slices of all three kinds, and for chips.
func TestSamples_ForTPUsCanBeSubmitted(t *testing.T) {
	runtimes, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := workload.Load([]string{"../../../manifests/samples-tpu"})
	if err != nil {
		t.Fatal(err)
	}
	if err := liverun.Check(samples, runtimes); err != nil {
		t.Error(err)
	}
	var text strings.Builder
	for _, object := range samples.Objects {
		fmt.Fprint(&text, object.Object.Object)
	}
	for _, shape := range []string{"2x2x4", "4x4x8", "4x4x4"} {
		if !strings.Contains(text.String(), "gke-tpu-slice-topology:"+shape) {
			t.Errorf("no sample asks for a slice %s", shape)
		}
	}
}

// A runtime that ships without a sample is one that was never seen complete. The sample of one with GPUs, called like
// another with -gpu, is the other's: plan's TestShippedRuntimes_GPUVariants holds both equal but for a GPU of each
// node.
func TestSamples_CoverEveryShippedRuntime(t *testing.T) {
	runtimes, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := workload.Load([]string{"../../../manifests/samples"})
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
		if !used[strings.TrimSuffix(runtime.GetName(), "-gpu")] && !used[runtime.GetName()] {
			t.Errorf("no sample uses runtime %s", runtime.GetName())
		}
	}
}

// The samples for real nodes choose them, and tolerate the taint that reserves them for such jobs.
func TestSamples_SelectRealNodes(t *testing.T) {
	runtimes, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := workload.Load([]string{"../../../manifests/samples-real"})
	if err != nil {
		t.Fatal(err)
	}
	if err := liverun.Check(samples, runtimes); err != nil {
		t.Error(err)
	}
	for _, job := range samples.TrainJobs() {
		patches, _, _ := unstructured.NestedSlice(job.Object.Object, "spec", "runtimePatches")
		if text := fmt.Sprint(patches); strings.Count(text, "simulator.lockstep.dev/node") != 2 {
			t.Errorf("%s has patches %s, want a selector and a toleration", job, text)
		}
	}
}
