package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// everything is every verb on everything of core, of groups, of TrainJobs and of Lockstep.
func everything() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{
			"",
			"scheduling.k8s.io",
			"trainer.kubeflow.org",
			"lockstep.dev",
			"scheduling.lockstep.dev",
			"state.lockstep.dev",
		},
		Resources: []string{"*"}, Verbs: []string{"*"},
	}}
}

// tenant has everything in the test's namespace.
func tenant(t *testing.T, namespace string) kubernetes.Interface {
	t.Helper()
	client, err := gangapi.Client(tenantWith(t, namespace, "tenant", everything()), offered().API())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func wantForbidden(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Fatalf("error %v, want the policy's refusal", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal does not say %q: %v", part, err)
		}
	}
}

// The start of a gang's wait determines its place in the queue; a tenant must not be able to set it.
func TestAdmissionPolicy_TenantsCannotWriteTimes(t *testing.T) {
	namespace := namespaceOf(t)
	submit(t, gang("timed", 2, "10m"))
	newRunners(t, namespace, "timed", 2, nil)
	groups := tenant(t, namespace).SchedulingV1beta1().PodGroups(namespace)
	testcluster.Within(t, 10*time.Second, "the tenant's role", func() bool {
		_, err := groups.Get(t.Context(), "timed", metav1.GetOptions{})
		return err == nil
	})
	patch := func(text string) error {
		_, err := groups.Patch(t.Context(), "timed", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	for _, key := range []string{"queued-at", "expected-end", "last-checkpoint", "late-members", "on-loss"} {
		err := patch(`{"metadata":{"annotations":{"lockstep.dev/` + key + `":"2020-01-01T00:00:00Z"}}}`)
		wantForbidden(t, err, "only the controller writes lockstep.dev/"+key, "gangtimes")
	}
	wantForbidden(t, patch(`{"metadata":{"annotations":null}}`), "lockstep.dev/queued-at")
	if err := patch(`{"metadata":{"annotations":{"lockstep.dev/spares":"1","example.com/note":"mine"}}}`); err != nil {
		t.Errorf("a wish of the tenant's is refused: %v", err)
	}
	own := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "own",
			Annotations: map[string]string{"lockstep.dev/queued-at": "2020-01-01T00:00:00Z"},
		},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1},
		}},
	}
	_, err := groups.Create(t.Context(), own, metav1.CreateOptions{})
	wantForbidden(t, err, "only the controller writes lockstep.dev/queued-at")
	own.Annotations = nil
	if _, err := groups.Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
		t.Errorf("a group without times is refused: %v", err)
	}
}

// That an object belongs to a TrainJob, only controllers of TrainJobs may say: the scheduler and the controller believe
// it.
func TestTrainJobOwners_AreSaidByControllersOnly(t *testing.T) {
	namespace := namespaceOf(t)
	t.Cleanup(func() { // after its job: the group, which the test frees from it, would reserve the place of its member
		ctx := context.WithoutCancel(t.Context())
		err := shared.Client.SchedulingV1beta1().PodGroups(namespace).Delete(ctx, "owning", metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	submit(t, gang("owning", 1, "10m"))
	newRunners(t, namespace, "owning", 1, nil)
	client := tenant(t, namespace)
	var group *schedulingv1beta1.PodGroup
	testcluster.Within(t, 10*time.Second, "the tenant's role", func() (found bool) {
		var err error
		group, err = client.SchedulingV1beta1().PodGroups(namespace).Get(t.Context(), "owning", metav1.GetOptions{})
		return err == nil
	})
	claim := group.OwnerReferences
	const refusal = "only a controller of TrainJobs says"
	configs := client.CoreV1().ConfigMaps(namespace)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "claimed", OwnerReferences: claim}}
	_, err := configs.Create(t.Context(), config, metav1.CreateOptions{})
	wantForbidden(t, err, refusal, "TrainJob owning")
	_, err = client.CoreV1().Secrets(namespace).Create(t.Context(),
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "owning-mpi-ssh-auth", OwnerReferences: claim},
		}, metav1.CreateOptions{})
	wantForbidden(t, err, refusal)
	forged := group.DeepCopy()
	forged.ObjectMeta = metav1.ObjectMeta{Name: "forged", OwnerReferences: claim}
	_, err = client.SchedulingV1beta1().PodGroups(namespace).Create(t.Context(), forged, metav1.CreateOptions{})
	wantForbidden(t, err, refusal)

	// A claim that is made weaker first, or later, is one all the same.
	config.OwnerReferences = []metav1.OwnerReference{*claim[0].DeepCopy()}
	config.OwnerReferences[0].Controller = nil
	_, err = configs.Create(t.Context(), config, metav1.CreateOptions{})
	wantForbidden(t, err, refusal)
	config.OwnerReferences = nil
	stored, err := configs.Create(t.Context(), config, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("a ConfigMap of the tenant's own is refused: %v", err)
	}
	stored.OwnerReferences = claim
	_, err = configs.Update(t.Context(), stored, metav1.UpdateOptions{})
	wantForbidden(t, err, refusal)

	// The copies that earlier versions stored are guarded by name, whatever their owner reference says.
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "owning-runtime-snapshot",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "evil.example/v1", Kind: "Nothing", Name: "owning", UID: claim[0].UID, Controller: new(true),
		}},
	}}
	_, err = configs.Create(t.Context(), copied, metav1.CreateOptions{})
	wantForbidden(t, err, refusal, "Nothing owning")

	// Objects of a job may be released, as the garbage collector does, and changed otherwise.
	free := []byte(`{"metadata":{"ownerReferences":null,"labels":{"mine":"yes"}}}`)
	if _, err := client.SchedulingV1beta1().
		PodGroups(namespace).
		Patch(t.Context(), group.Name, types.MergePatchType, free, metav1.PatchOptions{}); err != nil {
		t.Errorf("a group cannot be let go of: %v", err)
	}
}

// The controller may write ConfigMaps and Secrets in all namespaces, but only those of TrainJobs: by owner and by name.
func TestBelongings_AreAllThatTheControllerWrites(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	client, _ := asController(t)
	// The garbage collector deletes objects of a job that does not exist, so there are jobs, which no controller
	// reconciles.
	owner := func(kind, name string) []metav1.OwnerReference {
		apiVersion, job := "evil.example/v1", shared.Dynamic.Resource(trainJobs).Namespace(namespace)
		made, err := job.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			made = kept(t, trainJobs, fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s, namespace: %s}
spec: {suspend: true, managedBy: kueue.x-k8s.io/multikueue, runtimeRef: {name: torch-distributed}}
`, name, namespace))
		}
		if kind == made.GetKind() {
			apiVersion = made.GetAPIVersion()
		}
		return []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: name, UID: made.GetUID(), Controller: new(true)},
		}
	}
	for name, object := range map[string]metav1.ObjectMeta{
		"of nobody":             {Name: "train-mpi-ssh-auth"},
		"of an unknown kind":    {Name: "train-mpi-ssh-auth", OwnerReferences: owner("Nothing", "train")},
		"of another name":       {Name: "train-mpi-ssh-auth", OwnerReferences: owner("TrainJob", "other")},
		"of no ending of a job": {Name: "aws-auth", OwnerReferences: owner("TrainJob", "aws-auth")},
		"of a job's":            {Name: "train-tls-config", OwnerReferences: owner("TrainJob", "train")},
	} {
		t.Run(name, func(t *testing.T) {
			configs := shared.Client.CoreV1().ConfigMaps(namespace)
			config := &corev1.ConfigMap{ObjectMeta: object}
			_, created := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), config, metav1.CreateOptions{
				DryRun: []string{metav1.DryRunAll},
			})
			if _, err := configs.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			_, patched := client.CoreV1().ConfigMaps(namespace).Patch(t.Context(), object.Name, types.MergePatchType,
				[]byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
			deleted := client.CoreV1().ConfigMaps(namespace).Delete(t.Context(), object.Name, metav1.DeleteOptions{})
			for verb, err := range map[string]error{"create": created, "patch": patched, "delete": deleted} {
				if name == "of a job's" {
					if err != nil {
						t.Errorf("%s: %v", verb, err)
					}
					continue
				}
				wantForbidden(t, err, "only what belongs to a TrainJob")
			}
			err := configs.Delete(t.Context(), object.Name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("nobody else is held back: %v", err)
			}
		})
	}
}

// as is access as another user, or as an account with its groups.
func as(user string) *rest.Config {
	config := rest.CopyConfig(shared.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return config
}

// tenantless returns a client of a user without rights other than those of all authenticated users.
func tenantless(t *testing.T, user string) kubernetes.Interface {
	t.Helper()
	config := as(user)
	config.Impersonate.Groups = []string{"system:authenticated"}
	client, err := gangapi.Client(config, offered().API())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// makeNamespace creates a namespace that is ready for pods.
func makeNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := objectOf(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	if _, err := shared.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
}
