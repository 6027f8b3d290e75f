package plan_test

import (
	"path/filepath"
	"testing"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// TestSamplesRender plans each sample, as a gang, on the runtime that it names.
func TestSamplesRender(t *testing.T) {
	files, err := filepath.Glob("../../manifests/samples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var (
				job     trainerv1alpha1.TrainJob
				shipped trainerv1alpha1.ClusterTrainingRuntime
			)
			readYAML(t, file, &job)
			readYAML(t, filepath.Join("../../manifests/chart/runtimes", job.Spec.RuntimeRef.Name+".yaml"), &shipped)
			runtime := plan.Runtime{Kind: shipped.Kind, Name: shipped.Name, Spec: shipped.Spec}
			if _, err := plan.New(&job, runtime, plan.Options{Gang: true, ComputeDomains: true}); err != nil {
				t.Error(err)
			}
		})
	}
}
