package integration_test

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// may asks the API server whether a user may do something in a namespace: "verb group/resource", the core group being
// empty.
func may(t *testing.T, user, namespace, what string) bool {
	t.Helper()
	verb, resource, _ := strings.Cut(what, " ")
	group, resource, _ := strings.Cut(resource, "/")
	resource, sub, _ := strings.Cut(resource, "/")
	review, err := shared.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: []string{"system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub,
			},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// granted gives a user a ClusterRole in a namespace.
func granted(t *testing.T, namespace, role, user string) {
	t.Helper()
	_, err := shared.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// Users train with the roles that they have anyway. That edit writes PodGroups is Kubernetes' own rule: so a runtime,
// which its namespace's admin writes, gives no priority that could not be had without.
func TestAccess_BuiltInRolesKnowTraining(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	for _, role := range []string{"view", "edit", "admin"} {
		granted(t, namespace, role, "lockstep-"+role)
	}
	testcluster.Within(t, 20*time.Second, "the aggregation", func() bool {
		return may(t, "lockstep-edit", namespace, "create trainer.kubeflow.org/trainjobs") &&
			may(t, "lockstep-view", namespace, "list scheduling.lockstep.dev/podgroups")
	})
	rights := map[string]string{
		"list trainer.kubeflow.org/trainjobs":              "view edit admin",
		"get trainer.kubeflow.org/trainjobs/status":        "view edit admin",
		"watch trainer.kubeflow.org/trainingruntimes":      "view edit admin",
		"list trainer.kubeflow.org/trainingruntimes":       "view edit admin",
		"list scheduling.lockstep.dev/podgroups":           "view edit admin",
		"get scheduling.lockstep.dev/podgroups/status":     "view edit admin",
		"update scheduling.lockstep.dev/podgroups/status":  "",
		"create trainer.kubeflow.org/trainjobs":            "edit admin",
		"patch trainer.kubeflow.org/trainjobs":             "edit admin",
		"delete trainer.kubeflow.org/trainjobs":            "edit admin",
		"create trainer.kubeflow.org/trainingruntimes":     "admin",
		"update trainer.kubeflow.org/trainingruntimes":     "admin",
		"update trainer.kubeflow.org/trainjobs/status":     "",
		"update trainer.kubeflow.org/trainjobs/finalizers": "",
		"create scheduling.lockstep.dev/podgroups":         "edit admin",
		"patch scheduling.lockstep.dev/podgroups":          "edit admin",
		"create jobset.x-k8s.io/jobsets":                   "",
		"get state.lockstep.dev/frozentrainjobs":           "",
	}
	if offered() != probe.Resources { // Kubernetes' own roles have them
		maps.Copy(rights, map[string]string{
			"list scheduling.k8s.io/podgroups":   "view edit admin",
			"get scheduling.k8s.io/workloads":    "view edit admin",
			"create scheduling.k8s.io/podgroups": "edit admin",
			"patch scheduling.k8s.io/podgroups":  "edit admin",
			"create scheduling.k8s.io/workloads": "edit admin",
		})
	}
	for what, allowed := range rights {
		for _, role := range []string{"view", "edit", "admin"} {
			want := false
			for name := range strings.FieldsSeq(allowed) {
				want = want || name == role
			}
			if got := may(t, "lockstep-"+role, namespace, what); got != want {
				t.Errorf("%s: %s is allowed %t, want %t", role, what, got, want)
			}
		}
	}
	for what, want := range map[string]bool{
		"list trainer.kubeflow.org/clustertrainingruntimes":   true,
		"create trainer.kubeflow.org/clustertrainingruntimes": false,
	} {
		if got := may(t, "anybody", "", what); got != want {
			t.Errorf("%s is allowed %t to everybody, want %t", what, got, want)
		}
	}
}

// The SDK asks which Kubeflow Trainer it talks to. It is the one that conformance is checked against.
func TestAccess_TheSDKReadsTheVersion(t *testing.T) {
	const namespace, name = "kubeflow-system", "kubeflow-trainer-public"
	config, err := tenantless(t, "anybody").CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../controller/conformance/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`github\.com/kubeflow/trainer/v2 (v[0-9.]+)`).FindSubmatch(module)
	if found == nil || config.Data["kubeflow_trainer_version"] != string(found[1]) {
		t.Errorf("the version is %v, conformance is checked against %s", config.Data, found)
	}
	if may(t, "anybody", namespace, "list /configmaps") || may(t, "anybody", namespace, "update /configmaps") {
		t.Error("everybody may do more with ConfigMaps there than read this one")
	}
}

// Each role suffices for its purpose. The users have the names of the roles, by which the record of requests identifies
// them (package rights).
func TestAccess_UsersTrain(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	user := map[string]dynamic.Interface{}
	for _, role := range []string{"view", "edit", "admin"} {
		granted(t, namespace, role, "lockstep-"+role)
		user[role] = acting(t, "lockstep-"+role)
	}
	runtimes := trainJobs.GroupVersion().WithResource("trainingruntimes")
	testcluster.Within(t, 20*time.Second, "the aggregation", func() bool {
		return may(t, "lockstep-admin", namespace, "create trainer.kubeflow.org/trainingruntimes")
	})
	owned := func(client dynamic.Interface, resource schema.GroupVersionResource, spec string) {
		t.Helper()
		makesAndRemoves(t, client.Resource(resource).Namespace(namespace), spec)
	}
	owned(user["admin"], runtimes, `kind: TrainingRuntime
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: none}]}}}
`)
	owned(user["edit"], trainJobs, `kind: TrainJob
spec: {suspend: true, managedBy: kueue.x-k8s.io/multikueue, runtimeRef: {kind: ClusterTrainingRuntime, name: torch-distributed}}
`)
	wantForbidden(
		t,
		user["edit"].Resource(runtimes).Namespace(namespace).Delete(t.Context(), "mine", metav1.DeleteOptions{}),
		"",
	)
	groups := gangapi.Resources.Resource()
	owned(user["edit"], groups, `apiVersion: scheduling.lockstep.dev/v1beta1
kind: PodGroup
spec: {schedulingPolicy: {gang: {minCount: 1}}}
`)
	reads(t, user["view"].Resource(groups).Namespace(namespace))
	reads(t, user["view"].Resource(trainJobs).Namespace(namespace))
	reads(t, user["view"].Resource(runtimes).Namespace(namespace))
	for _, resource := range []schema.GroupVersionResource{trainJobs, groups} {
		_, err := user["view"].Resource(resource).
			Namespace(namespace).
			Get(t.Context(), "none", metav1.GetOptions{}, "status")
		wantNotFound(t, err)
	}
	reads(
		t,
		acting(
			t,
			"anybody",
			"system:authenticated",
		).Resource(trainJobs.GroupVersion().WithResource("clustertrainingruntimes")),
	)
}

// acting is a client of a user.
func acting(t *testing.T, user string, groups ...string) dynamic.Interface {
	t.Helper()
	config := as(user)
	config.Impersonate.Groups = groups
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// reads gets, lists and watches objects; none of them is called none.
func reads(t *testing.T, client dynamic.ResourceInterface) {
	t.Helper()
	if _, err := client.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	watching, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Error(err)
	} else {
		watching.Stop()
	}
	_, err = client.Get(t.Context(), "none", metav1.GetOptions{})
	wantNotFound(t, err)
}

func wantNotFound(t *testing.T, err error) {
	t.Helper()
	if !apierrors.IsNotFound(err) {
		t.Errorf("want an answer that there is none, got %v", err)
	}
}

// makesAndRemoves creates an object, changes it in both ways, and removes it and another one in both ways.
func makesAndRemoves(t *testing.T, client dynamic.ResourceInterface, manifest string) {
	t.Helper()
	for _, name := range []string{"mine", "too"} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetAPIVersion() == "" {
			object.SetAPIVersion(trainJobs.GroupVersion().String())
		}
		object.SetName(name)
		made, err := client.Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made.SetLabels(map[string]string{"updated": "yes"})
		if _, err := client.Update(
			t.Context(),
			made,
			metav1.UpdateOptions{},
		); err != nil &&
			!apierrors.IsConflict(err) {
			t.Error(err)
		}
	}
	patch := []byte(`{"metadata":{"labels":{"patched":"yes"}}}`)
	if _, err := client.Patch(t.Context(), "mine", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if err := client.Delete(t.Context(), "mine", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// tenantWith returns access for a user with these rights in a namespace, and no others.
func tenantWith(t *testing.T, namespace, name string, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	_, err := shared.Client.RbacV1().Roles(namespace).Create(t.Context(),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = shared.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return as(name)
}
