package plan_test

import (
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// TestShippedRuntimesRender plans a job on each runtime that is shipped, as a gang. A runtime's framework label, which
// clients read, must be the framework that it gets.
func TestShippedRuntimesRender(t *testing.T) {
	files, err := filepath.Glob("../../manifests/chart/runtimes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no runtimes: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var shipped trainerv1alpha1.ClusterTrainingRuntime
			readYAML(t, file, &shipped)
			if want := strings.TrimSuffix(filepath.Base(file), ".yaml"); shipped.Name != want {
				t.Errorf("the runtime is called %s, want %s like its file", shipped.Name, want)
			}
			job := &trainerv1alpha1.TrainJob{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train"},
				Spec: trainerv1alpha1.TrainJobSpec{
					RuntimeRef: trainerv1alpha1.RuntimeRef{Name: shipped.Name},
					Trainer:    &trainerv1alpha1.Trainer{NumNodes: new(int32(3)), Image: new("example.com/mine:1")},
				},
			}
			planned, err := plan.New(
				job,
				plan.Runtime{Name: shipped.Name, Spec: shipped.Spec},
				plan.Options{Gang: true},
			)
			if err != nil {
				t.Fatal(err)
			}
			label := shipped.Labels[trainerv1alpha1.LabelFramework]
			switch label {
			case "deepspeed", "mlx": // started by mpirun
				label = "mpi"
			case "torchtune": // the job's command asks for it
				label = "torch"
			}
			if planned.Framework != label {
				t.Errorf("its label says %s, but it gets %s", label, planned.Framework)
			}
			members := int(planned.PodGroups[0].Spec.SchedulingPolicy.Gang.MinCount)
			members += strings.Count(planned.PodGroups[0].Annotations[topology.AnnotationLateMembers], `"metadata"`)
			if members != 3 {
				t.Errorf("%d members, late ones included, want 3", members)
			}
			for _, replicated := range planned.JobSet.Spec.ReplicatedJobs {
				step := replicated.Template.Labels[trainerv1alpha1.LabelAncestor]
				if step != trainerv1alpha1.AncestorTrainer && replicated.Name != trainerv1alpha1.NodeName {
					continue
				}
				node := replicated.Template.Spec.Template.Spec.Containers[0]
				if node.Name != trainerv1alpha1.NodeName || node.Image != "example.com/mine:1" {
					t.Errorf(
						"the job's image is not in container node of %s: %s runs %s",
						replicated.Name,
						node.Name,
						node.Image,
					)
				}
			}
		})
	}
}
