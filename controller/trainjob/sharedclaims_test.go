package trainjob_test

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// Admission plugin OwnerReferencesPermissionEnforcement refuses blockOwnerDeletion to a controller without a right on
// the finalizers of PodGroups, which this one does not have.
func TestSharedClaim_DoesNotBlockItsGroup(t *testing.T) {
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "domain"}}
	w := newFixture(t, plan.Options{GangAPI: gangapi.Resources}, grouped(), trainJob(), template)
	w.settle()
	var claims resourcev1.ResourceClaimList
	if err := w.Client.List(t.Context(), &claims); err != nil || len(claims.Items) != 1 {
		t.Fatalf("%d claims (%v), want 1", len(claims.Items), err)
	}
	owner := metav1.GetControllerOf(&claims.Items[0])
	if owner == nil || owner.Name != "train-node" || owner.BlockOwnerDeletion != nil {
		t.Errorf("the claim's owner is %+v, want PodGroup train-node without blockOwnerDeletion", owner)
	}
}

// Other gangs wait for the devices of a group with shared claims: it is deleted with its job.
func TestPodGroups_WithClaimsDeletedAtOnce(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.settle()
	group := w.podGroup()
	group.Spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{{Name: "channel"}}
	if err := w.Client.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = []metav1.Condition{
			{
				Type:               "Completed",
				Status:             "True",
				Reason:             "AllJobsCompleted",
				LastTransitionTime: metav1.NewTime(created()),
			},
		}
	})
	w.settle()
	if w.podGroup() != nil {
		t.Error("the group of a finished job still holds its claims")
	}
}
