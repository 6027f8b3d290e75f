package frameworks_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
	"github.com/lockstep-project/lockstep/simulator/live/realnode"
)

// The shipped samples train on real nodes unchanged, on nodes that say to be trays of the default fleet. Where one has
// more ranks than this machine can carry, ranks is the number that it has here.
func TestSamples_TrainForReal(t *testing.T) {
	asTrays(t)
	for _, sample := range []struct {
		file, job string
		ranks     int64
	}{
		{file: "plain.yaml", job: "plain-sweep"},
		{file: "jax.yaml", job: "jax-pretrain"},
		{file: "xgboost.yaml", job: "xgboost-ranking"},
		{file: "mlx.yaml", job: "mlx-lora"},
		{file: "deepspeed.yaml", job: "deepspeed-finetune"},
		{file: "deadline.yaml", job: "my-trainjob"},
		{file: "runtime-patches.yaml", job: "pytorch-distributed"},
		{file: "torch-one-clique.yaml", job: "torch-one-clique", ranks: 2},
	} {
		t.Run(sample.job, func(t *testing.T) {
			job := readSample(t, sample.file, sample.job)
			if sample.ranks > 0 {
				if err := unstructured.SetNestedField(
					job.Object,
					sample.ranks,
					"spec",
					"trainer",
					"numNodes",
				); err != nil {
					t.Fatal(err)
				}
			}
			for _, node := range nodes {
				if err := node.TagUserland(
					t.Context(),
					realnode.Images([]*unstructured.Unstructured{job})...); err != nil {
					t.Fatal(err)
				}
			}
			job.SetNamespace("default")
			if err := shared.Apply(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			within(t, 4*time.Minute, "its completion", func() bool {
				for _, condition := range conditionsOf(t, sample.job) {
					if condition.Type == "Failed" && condition.Status == metav1.ConditionTrue {
						t.Fatalf("it failed: %s", condition.Message)
					}
					if condition.Type == "Complete" && condition.Status == metav1.ConditionTrue {
						return true
					}
				}
				return false
			})
			record(t.Name(), "Complete, `manifests/samples/"+sample.file+"`", time.Since(began).Seconds())
		})
	}
}

// asTrays has the real nodes look as two trays of the default fleet, with room for the largest sample.
func asTrays(t *testing.T) {
	t.Helper()
	trays, err := fleet.Open("gb200-72")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"accelerator": "nvidia-tesla-v100"} // which a sample selects
	for key, value := range trays.Nodes[0].Labels {
		if key != "kubernetes.io/hostname" && key != "kubernetes.io/arch" {
			labels[key] = value
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if _, err := shared.Client.CoreV1().Nodes().
			Patch(t.Context(), node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := node.Offer(t.Context(), shared.Client, gpu, 16); err != nil {
			t.Fatal(err)
		}
	}
}

// readSample returns a TrainJob of a shipped sample.
func readSample(t *testing.T, file, name string) *unstructured.Unstructured {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "manifests", "samples", file))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render.Objects(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "TrainJob" && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("%s has no TrainJob %s", file, name)
	return nil
}

// conditionsOf are the conditions of a TrainJob.
func conditionsOf(t *testing.T, job string) []metav1.Condition {
	t.Helper()
	raw, err := json.Marshal(statusOf(t, job))
	if err != nil {
		t.Fatal(err)
	}
	var status struct{ Conditions []metav1.Condition }
	if err := json.Unmarshal(raw, &status); err != nil {
		t.Fatal(err)
	}
	return status.Conditions
}
