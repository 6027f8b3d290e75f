package integration_test

import (
	"context"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// The keys of the instant since which a job waits, on its PodGroup and on itself.
const (
	queuedAt    = "lockstep.dev/queued-at"
	jobQueuedAt = "state.lockstep.dev/queued-at"
)

// Suspended jobs are no tickets for the head of the queue: a job that its owner resumes waits from then on, whatever he
// writes, and so does a job that a client with all rights resumes (Argo CD); a queued job that a controller resumes
// (Kueue) has been waiting all the time.
func TestTurn_OwnersResumeAtTheEnd(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	rule := rbacv1.PolicyRule{
		APIGroups: []string{"trainer.kubeflow.org"},
		Resources: []string{"trainjobs"},
		Verbs:     []string{"get", "patch"},
	}
	own := rule
	own.Resources = append([]string{"trainjobs/status"}, rule.Resources...)
	own.Verbs = append([]string{"update"}, rule.Verbs...)
	const queued = `, labels: {kueue.x-k8s.io/queue-name: research}`
	owner := dynamic.NewForConfigOrDie(tenantWith(t, namespace, "owner", []rbacv1.PolicyRule{own}))
	controller := dynamic.NewForConfigOrDie(controllerOfJobs(t, own))
	for name, c := range map[string]struct {
		user   dynamic.Interface
		labels string
		anew   bool
	}{
		// A user who may write the status in one namespace only is no controller.
		"owner":      {user: owner, labels: queued, anew: true},
		"controller": {user: controller, labels: queued},
		"deployer":   {user: controller, anew: true},
	} {
		t.Run(name, func(t *testing.T) {
			created := kept(t, trainJobs, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: `+name+`, namespace: `+namespace+c.labels+`, annotations: {`+jobQueuedAt+`: "2020-01-01T00:00:00Z", lockstep.dev/gang: "on"}}
spec: {suspend: true, runtimeRef: {name: torch-distributed}}
`)
			if created.GetAnnotations()[jobQueuedAt] != "" {
				t.Errorf("a new job waits since %s", created.GetAnnotations()[jobQueuedAt])
			}
			since := created.GetCreationTimestamp().Time
			time.Sleep(2 * time.Second)
			resume := `{"metadata":{"annotations":{"` + jobQueuedAt + `":"2020-01-01T00:00:00Z"}},"spec":{"suspend":false}}`
			testcluster.Within(t, 10*time.Second, "the right to resume", func() bool {
				_, err := c.user.Resource(trainJobs).Namespace(namespace).
					Patch(t.Context(), name, types.MergePatchType, []byte(resume), metav1.PatchOptions{})
				return err == nil
			})
			testcluster.Within(t, 20*time.Second, "the PodGroup", func() bool {
				group, err := shared.Client.SchedulingV1beta1().
					PodGroups(namespace).
					Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					return false
				}
				at, err := time.Parse(time.RFC3339, group.Annotations[queuedAt])
				if err != nil || at.After(since) != c.anew || at.Before(since) {
					t.Fatalf("it waits since %s, and was created at %s", group.Annotations[queuedAt], since)
				}
				return true
			})
		})
	}
}

// controllerOfJobs returns access for a user with the rights in all namespaces.
func controllerOfJobs(t *testing.T, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	const name = "queue-controller"
	roles := shared.Client.RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	if _, err := roles.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := roles.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = roles.ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
		_ = roles.ClusterRoles().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	})
	return as(name)
}
