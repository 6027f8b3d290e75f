package integration_test

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lockstep-project/lockstep/controller/lease"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// editor returns access for a user with the rules of the stock role edit in a namespace. They are those of a role that
// edit aggregates, so that the test does not wait for the aggregation.
func editor(t *testing.T, namespace string) *rest.Config {
	t.Helper()
	const name = "editor"
	_, err := shared.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-edit",
		},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return as(name)
}

// leaseOf returns a lease with a holder, renewed in the far future.
func leaseOf(name, holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: time.Now().Add(1000 * time.Hour)},
		},
	}
}

// A held lease of Kubeflow Trainer's name in any namespace stops the controller, so a tenant with edit in one must not
// write it. A controller of TrainJobs may. Writes that succeed are dry runs: the cluster's controller works on.
func TestTrainerLeases_AreWrittenByControllersOnly(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	attacker := kubernetes.NewForConfigOrDie(editor(t, namespace)).CoordinationV1().Leases(namespace)
	trainer := kubernetes.NewForConfigOrDie(controllerOfJobs(
		t,
		rbacv1.PolicyRule{
			APIGroups: []string{"trainer.kubeflow.org"},
			Resources: []string{"trainjobs/status"},
			Verbs:     []string{"update"},
		},
		rbacv1.PolicyRule{
			APIGroups: []string{"coordination.k8s.io"},
			Resources: []string{"leases"},
			Verbs:     []string{"create", "update"},
		},
	)).CoordinationV1().Leases(namespace)
	const refusal = "only a controller of TrainJobs writes it"
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	testcluster.Within(t, 10*time.Second, "the users' roles", func() bool {
		_, tenant := attacker.Create(t.Context(), leaseOf("another", "me"), dry)
		_, other := trainer.Create(t.Context(), leaseOf("another", "me"), dry)
		return tenant == nil && other == nil
	})

	_, err := attacker.Create(t.Context(), leaseOf(lease.Trainer, "me"), metav1.CreateOptions{})
	wantForbidden(t, err, refusal)
	applied := []byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"` + lease.Trainer +
		`"},"spec":{"holderIdentity":"me"}}`)
	_, err = attacker.Patch(t.Context(), lease.Trainer, types.ApplyPatchType, applied,
		metav1.PatchOptions{FieldManager: "me"})
	wantForbidden(t, err, refusal)
	if _, err = trainer.Create(t.Context(), leaseOf(lease.Trainer, "trainer"), dry); err != nil {
		t.Errorf("a controller of TrainJobs cannot create its lease: %v", err)
	}

	// A Kubeflow Trainer that has ended leaves a lease without a holder, which a tenant could renew.
	left := givenUp(t, namespace)
	left.Spec = leaseOf(lease.Trainer, "me").Spec
	_, err = attacker.Update(t.Context(), left, metav1.UpdateOptions{})
	wantForbidden(t, err, refusal)
	if _, err = trainer.Update(t.Context(), left, metav1.UpdateOptions{DryRun: dry.DryRun}); err != nil {
		t.Errorf("a controller of TrainJobs cannot renew its lease: %v", err)
	}
}

// givenUp creates the lease of a Kubeflow Trainer that has ended, and deletes it when the test ends.
func givenUp(t *testing.T, namespace string) *coordinationv1.Lease {
	t.Helper()
	leases := shared.Client.CoordinationV1().Leases(namespace)
	created, err := leases.Create(t.Context(),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lease.Trainer}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := leases.Delete(context.WithoutCancel(t.Context()), lease.Trainer, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return created
}
