package trainjob_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// JobSet's webhook completes volume claims when a JobSet is created and refuses changes of them: a job that was created
// suspended must continue with the existing ones.
func TestVolumeClaims_StayUnchanged(t *testing.T) {
	rt := torch()
	rt.Spec.Template.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{
		Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "initializer"}}},
	}}
	w := newFixture(t, plan.Options{}, rt, trainJob(suspend(true)))
	w.settle()
	completed := w.jobSet()
	completed.Spec.VolumeClaimPolicies[0].RetentionPolicy = &jobsetv1alpha2.VolumeRetentionPolicy{
		WhenDeleted: new(jobsetv1alpha2.RetentionPolicyDelete),
	}
	if err := w.Client.Update(t.Context(), completed); err != nil {
		t.Fatal(err)
	}
	w.change(suspend(false))
	w.settle()
	if kept := w.jobSet().Spec.VolumeClaimPolicies[0].RetentionPolicy; kept == nil || kept.WhenDeleted == nil {
		t.Errorf("the retention policy is %v now: the API server would refuse that", kept)
	}
}
