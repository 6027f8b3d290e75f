package admission_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-project/lockstep/controller/admission"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// A job that Kueue queues names all resources that it will have: Kueue 0.19 counts resourcesPerNode in the place of the
// runtime's. A job that names none is counted by its runtime, and one without a queue by nothing.
func TestValidator_QueuedJobNamesTheRuntimesResources(t *testing.T) {
	found := there(t) // a runtime with requests of CPUs and a limit of GPUs
	list := func(names ...corev1.ResourceName) corev1.ResourceList {
		made := corev1.ResourceList{}
		for _, name := range names {
			made[name] = resource.MustParse("1")
		}
		return made
	}
	validator := &admission.Validator{Runtimes: found, Options: plan.Options{}}
	for name, c := range map[string]struct {
		queue string
		want  *corev1.ResourceRequirements
		fault string
	}{
		"all of the runtime's":        {"lq", nil, ""},
		"without a queue":             {"", &corev1.ResourceRequirements{Requests: list("memory")}, ""},
		"its CPUs only":               {"lq", &corev1.ResourceRequirements{Requests: list("cpu")}, "would not count nvidia.com/gpu: 4;"},
		"neither of them":             {"lq", &corev1.ResourceRequirements{}, "would not count cpu: 3500m, nvidia.com/gpu: 4;"},
		"both":                        {"lq", &corev1.ResourceRequirements{Requests: list("cpu"), Limits: list("nvidia.com/gpu")}, ""},
		"limits where it has request": {"lq", &corev1.ResourceRequirements{Limits: list("cpu", "nvidia.com/gpu")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			job := &trainerv1alpha1.TrainJob{}
			job.Namespace, job.Name, job.Spec.RuntimeRef.Name = "team-a", "train", "rt"
			if c.queue != "" {
				job.Labels = map[string]string{plan.KueueQueueLabel: c.queue}
			}
			job.Spec.Trainer = &trainerv1alpha1.Trainer{ResourcesPerNode: c.want}
			verdict, err := validator.Create(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.fault == "" && verdict.Refusal != nil:
				t.Errorf("refused: %v", verdict.Refusal)
			case c.fault != "" && (verdict.Refusal == nil || !strings.Contains(verdict.Refusal.Error(), c.fault)):
				t.Errorf("refused with %v, want %q", verdict.Refusal, c.fault)
			}
			old := job.DeepCopy()
			job.Labels = map[string]string{"team": "a"}
			if c.queue != "" {
				job.Labels[plan.KueueQueueLabel] = c.queue
			}
			if verdict, err = validator.Update(t.Context(), old, job); err != nil || verdict.Refusal != nil {
				t.Errorf("a job that was let in earlier cannot be labeled: %v %v", verdict.Refusal, err)
			}
		})
	}
}
