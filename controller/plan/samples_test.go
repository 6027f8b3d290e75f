package plan_test

import (
	"path/filepath"
	"testing"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// TestSamples_Render plans each sample, as a gang, on the runtime that it names.
func TestSamples_Render(t *testing.T) {
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

// TestKatib_TrialRenders plans the trial that Katib renders from the sample of a sweep (simulator/integration/katib).
func TestKatib_TrialRenders(t *testing.T) {
	var (
		job     trainerv1alpha1.TrainJob
		shipped trainerv1alpha1.ClusterTrainingRuntime
	)
	readYAML(t, "../../simulator/integration/katib/testdata/trial.yaml", &job)
	readYAML(t, "../../manifests/chart/runtimes/torch-distributed.yaml", &shipped)
	planned, err := plan.New(
		&job,
		plan.Runtime{Kind: shipped.Kind, Name: shipped.Name, Spec: shipped.Spec},
		plan.Options{},
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(planned.PodGroups) != 1 || planned.PodGroups[0].Labels["lockstep.dev/sweep"] != "learning-rate" ||
		planned.PodGroups[0].Annotations["lockstep.dev/sweep-parallelism"] != "4" {
		t.Errorf("groups: %+v", planned.PodGroups)
	}
}
