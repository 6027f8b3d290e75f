package plan_test

import (
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// A job of four nodes with the shipped runtime for torch is one gang: no pod starts before all four have a node.
func ExampleNew() {
	text, err := os.ReadFile("../../manifests/chart/runtimes/torch-distributed.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	var shipped trainerv1alpha1.ClusterTrainingRuntime
	if err := yaml.UnmarshalStrict(text, &shipped); err != nil {
		fmt.Println(err)
		return
	}
	runtime := plan.Runtime{Kind: "ClusterTrainingRuntime", Name: shipped.Name, Spec: shipped.Spec}
	job := &trainerv1alpha1.TrainJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train"},
		Spec: trainerv1alpha1.TrainJobSpec{
			RuntimeRef: trainerv1alpha1.RuntimeRef{Name: shipped.Name},
			Trainer:    &trainerv1alpha1.Trainer{NumNodes: new(int32(4)), Image: new("example/train:1")},
		},
	}
	planned, err := plan.New(job, runtime, plan.Options{Gang: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, group := range planned.PodGroups {
		fmt.Println("PodGroup", group.Name, "of", group.Spec.SchedulingPolicy.Gang.MinCount)
	}
	for _, replicated := range planned.JobSet.Spec.ReplicatedJobs {
		pod := replicated.Template.Spec.Template.Spec
		fmt.Println("pods", replicated.Name, "of", *replicated.Template.Spec.Parallelism, "by", pod.SchedulerName)
		for _, variable := range pod.Containers[0].Env {
			if variable.Value != "" {
				fmt.Println(" ", variable.Name, variable.Value)
			}
		}
	}
	// Output:
	// PodGroup train of 4
	// pods node of 4 by lockstep-scheduler
	//   PET_NNODES 4
	//   PET_NPROC_PER_NODE 1
	//   PET_MASTER_ADDR train-node-0-0.train
	//   PET_MASTER_PORT 29500
}
