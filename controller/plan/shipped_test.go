package plan_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// TestShippedRuntimes_RenderAsGangs plans a job on each runtime that is shipped, as a gang. A runtime's framework
// label, which clients read, must be the framework that it gets.
func TestShippedRuntimes_RenderAsGangs(t *testing.T) {
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

// TestShippedRuntimes_GPUVariants holds each runtime for GPUs against the one without: it is that, with one GPU for
// each node, so that the two do not drift apart. pytorch-distributed-gpu is the one of torch-distributed, with the
// number of nodes of its guide, and torchtune's have two.
func TestShippedRuntimes_GPUVariants(t *testing.T) {
	const folder = "../../manifests/chart/runtimes/"
	variants := map[string]string{"torch-distributed": "pytorch-distributed-gpu"}
	for _, name := range []string{
		"deepspeed-distributed", "flux-distributed", "jax-distributed", "mlx-distributed", "plain", "torch-distributed-with-cache", "xgboost-distributed",
	} {
		variants[name] = name + "-gpu"
	}
	files, err := filepath.Glob(folder + "*.yaml")
	if err != nil || len(files) != 2*len(variants)+3 {
		t.Errorf("%d runtimes, want two of each of %d and three of torchtune: %v", len(files), len(variants), err)
	}
	for name, variant := range variants {
		var plain, gpu trainerv1alpha1.ClusterTrainingRuntime
		readYAML(t, folder+name+".yaml", &plain)
		readYAML(t, folder+variant+".yaml", &gpu)
		want := plain.DeepCopy()
		want.Name = variant
		if name == "torch-distributed" {
			want.Spec.MLPolicy.NumNodes = new(int32(2))
		}
		for i := range want.Spec.Template.Spec.ReplicatedJobs {
			containers := want.Spec.Template.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Containers
			for j := range containers {
				if len(containers[j].Resources.Limits)+len(containers[j].Resources.Requests) > 0 {
					t.Errorf("%s asks for resources: %v", name, containers[j].Resources)
				}
				if containers[j].Name == trainerv1alpha1.NodeName {
					containers[j].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
				}
			}
		}
		if diff := cmp.Diff(want, &gpu); diff != "" {
			t.Errorf("%s is not %s with a GPU (-want +got):\n%s", variant, name, diff)
		}
	}
}
