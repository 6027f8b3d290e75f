package integration_test

import (
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
)

// tenant may do everything in the test's namespace that a namespace's administrator may.
func tenant(t *testing.T, namespace string) kubernetes.Interface {
	t.Helper()
	const name = "tenant"
	_, err := shared.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = shared.Client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{
					"",
					"scheduling.k8s.io",
					"trainer.kubeflow.org",
				},
				Resources: []string{"*"},
				Verbs:     []string{"*"},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(shared.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	client, err := kubernetes.NewForConfig(config)
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

// Since when a gang waits decides who is next; a tenant must not be able to say it.
func TestTenantsCannotWriteTimes(t *testing.T) {
	play(t, 30*time.Second, gang("timed", 2, "1s"))
	namespace := namespaceOf(t)
	groups := tenant(t, namespace).SchedulingV1beta1().PodGroups(namespace)
	within(t, 10*time.Second, "the tenant's role", func() bool {
		_, err := groups.Get(t.Context(), "timed", metav1.GetOptions{})
		return err == nil
	})
	patch := func(text string) error {
		_, err := groups.Patch(t.Context(), "timed", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	for _, key := range []string{"queued-at", "expected-end", "last-checkpoint", "late-members"} {
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

// Who can only use the administrator's runtimes must not be able to bring one of his own as a job's copy.
func TestTenantsCannotForgeRuntimes(t *testing.T) {
	play(t, 30*time.Second, gang("copied", 1, "1s"))
	namespace := namespaceOf(t)
	configs := tenant(t, namespace).CoreV1().ConfigMaps(namespace)
	var copied *corev1.ConfigMap
	within(t, 10*time.Second, "the tenant's role", func() (found bool) {
		var err error
		copied, err = configs.Get(t.Context(), "copied-runtime-snapshot", metav1.GetOptions{})
		return err == nil
	})
	forged := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:            "next-runtime-snapshot",
			OwnerReferences: copied.OwnerReferences,
		},
		Data: copied.Data,
	}
	_, err := configs.Create(t.Context(), forged, metav1.CreateOptions{})
	wantForbidden(t, err, "only the controller keeps copies of runtimes")
	forged.OwnerReferences = nil
	stored, err := configs.Create(t.Context(), forged, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("a ConfigMap of the tenant's own is refused: %v", err)
	}
	stored.OwnerReferences = copied.OwnerReferences
	_, err = configs.Update(t.Context(), stored, metav1.UpdateOptions{})
	wantForbidden(t, err, "only the controller keeps copies of runtimes")
	copied.OwnerReferences = nil // as the garbage collector does when a job is deleted and its dependents are not
	if _, err = configs.Update(t.Context(), copied, metav1.UpdateOptions{}); err != nil {
		t.Errorf("a copy cannot be let go of: %v", err)
	}
}

// The controller may delete Secrets by name, but only those of TrainJobs.
func TestTheControllerDeletesNothingElse(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	config := rest.CopyConfig(shared.Admin)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:lockstep-system:lockstep-controller",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	controller, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	secrets := shared.Client.CoreV1().Secrets(namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "train-mpi-ssh-auth"}}
	if _, err = secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err = controller.CoreV1().Secrets(namespace).Delete(t.Context(), secret.Name, metav1.DeleteOptions{})
	wantForbidden(t, err, "only what belongs to a TrainJob")
	if err = secrets.Delete(t.Context(), secret.Name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("nobody else is held back: %v", err)
	}
}

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := shared.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
