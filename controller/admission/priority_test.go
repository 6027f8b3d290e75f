package admission_test

import (
	"cmp"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// Volcano would leave a group with a class that does not exist pending.
func TestPriorityClass_OfVolcanoGroupMustExist(t *testing.T) {
	for name, c := range map[string]struct{ class, exists, want string }{
		"none":                   {},
		"one that is":            {class: "high", exists: "high"},
		"one of Kubernetes' own": {class: "system-node-critical"},
		"one that is not": {class: "high", want: `spec.templateSpec.priorityClassName: Invalid value: "high": ` +
			`PriorityClass "high" doesn't exist: priorityclasses.scheduling.k8s.io "high" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			found := there(t)
			found.found.Runtime.Spec.PodGroupPolicy = &trainerv1alpha1.PodGroupPolicy{
				PodGroupPolicySource: trainerv1alpha1.PodGroupPolicySource{
					Volcano: &trainerv1alpha1.VolcanoPodGroupPolicySource{},
				},
			}
			found.found.Runtime.Spec.Template.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.PriorityClassName = c.class
			got, err := newValidator(t, found, classOf(cmp.Or(c.exists, "other"))).Create(t.Context(), trainJob())
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, c.want, "")
		})
	}
}

func classOf(name string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// A job names a class that exists, and none of those that Kubernetes and Lockstep reserve.
func TestPriorityClass_OfJobMustExist(t *testing.T) {
	const at = "metadata.annotations[lockstep.dev/priority-class]: Invalid value: "
	const must = "must be the name of a PriorityClass that is not lockstep and does not start with system-"
	for name, want := range map[string]string{
		"high":                 "",
		"low":                  at + `"low": PriorityClass "low" doesn't exist: priorityclasses.scheduling.k8s.io "low" not found`,
		"system-node-critical": at + `"system-node-critical": ` + must,
		"No class":             at + `"No class": ` + must,
		plan.OwnPriorityClass:  at + `"lockstep": ` + must,
	} {
		job := trainJob(annotated("lockstep.dev/priority-class", name))
		got, err := newValidator(t, there(t), classOf("high"), classOf("lockstep")).Create(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		check(t, got, want, "")
	}
}
