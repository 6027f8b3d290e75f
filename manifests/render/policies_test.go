package render_test

import (
	"cmp"
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/render"
)

const (
	// tenant may do everything in its namespace, and nothing in the cluster.
	tenant = "tenant"
	// scheduler may write gangpriorities in the cluster.
	scheduler = "system:serviceaccount:lockstep-system:lockstep-scheduler"
	// upstream may update the status of TrainJobs in the cluster, as Kubeflow Trainer does.
	upstream = "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"
)

// rights is the cluster's authorizer.
type rights struct{}

func (rights) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	may := asked.GetUser().GetName() == tenant && asked.GetNamespace() == "team-a" ||
		asked.GetUser().GetName() == scheduler && asked.GetNamespace() == "" && asked.IsResourceRequest() &&
			asked.GetAPIGroup() == "lockstep.dev" && asked.GetResource() == "gangpriorities" && asked.GetVerb() == "write" ||
		asked.GetUser().GetName() == upstream && asked.GetNamespace() == "" && asked.IsResourceRequest() &&
			asked.GetAPIGroup() == "trainer.kubeflow.org" && asked.GetResource() == "trainjobs" &&
			asked.GetSubresource() == "status" && asked.GetVerb() == "update"
	if may {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// admissionOf returns the admission of an API server that has one of the policies of the chart.
func admissionOf(t *testing.T, name string) *validating.Plugin {
	t.Helper()
	objects := rendered(t, render.Default())
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for kind, into := range map[string]any{
		"ValidatingAdmissionPolicy": &policy, "ValidatingAdmissionPolicyBinding": &binding,
	} {
		found, ok := objects[kind+"  "+name]
		if !ok {
			t.Fatalf("there is no %s %s", kind, name)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, into); err != nil {
			t.Fatal(err)
		}
	}
	// The API server fills these in.
	policy.Spec.MatchConstraints.MatchPolicy = new(admissionregistrationv1.Equivalent)
	policy.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{}
	policy.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{}
	for i := range policy.Spec.MatchConstraints.ResourceRules {
		policy.Spec.MatchConstraints.ResourceRules[i].Scope = new(admissionregistrationv1.AllScopes)
	}
	client := fake.NewClientset(&policy, &binding,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gpu-operator"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: render.Default().Namespace}})
	factory := informers.NewSharedInformerFactory(client, 0)
	plugin, err := validating.NewPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(factory)
	plugin.SetRESTMapper(meta.NewDefaultRESTMapper(nil))
	plugin.SetDynamicClient(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()))
	plugin.SetUnconditionalAuthorizer(rights{})
	plugin.SetDrainedNotification(t.Context().Done())
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(stop)
	factory.Start(ctx.Done())
	if !plugin.WaitForReady() {
		t.Fatal("the policies are not known in time")
	}
	return plugin
}

// write is a request. It creates next if old is nil.
type write struct {
	by string
	// namespace is the object's; empty for team-a.
	namespace string
	// pod is the pod that owns the request's token; empty for none.
	pod         string
	resource    schema.GroupVersionResource
	kind        string
	subresource string
	// name is the object's; empty for x.
	name      string
	old, next runtime.Object
}

// admit returns the refusal of a write by the admission; nil if it is admitted.
func admit(t *testing.T, plugin *validating.Plugin, w write) error {
	t.Helper()
	operation, options := admission.Create, runtime.Object(&metav1.CreateOptions{})
	if w.old != nil {
		operation, options = admission.Update, &metav1.UpdateOptions{}
	}
	return plugin.Validate(t.Context(), admission.NewAttributesRecord(
		w.next,
		w.old,
		w.resource.GroupVersion().WithKind(w.kind),
		cmp.Or(w.namespace, "team-a"),
		cmp.Or(w.name, "x"),
		w.resource,
		w.subresource,
		operation,
		options,
		false,
		w.user(),
	), admission.NewObjectInterfacesFromScheme(clientscheme.Scheme))
}

func (w write) user() user.Info {
	info := &user.DefaultInfo{Name: w.by}
	if w.pod != "" {
		info.Extra = map[string][]string{"authentication.kubernetes.io/pod-name": {w.pod}}
	}
	return info
}

// says fails the test unless err is a refusal with a text; "" stands for a write that is admitted.
func says(t *testing.T, name string, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", name, err, text)
	}
}

// Membership is decided when a pod is created. An API server without the field drops it before policies see the pod, so
// the label alone counts there.
func TestPolicies_GangMembers(t *testing.T) {
	plugin := admissionOf(t, "gangmembers.lockstep.dev")
	pod := func(labels map[string]string, group *corev1.PodSchedulingGroup) runtime.Object {
		return &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x", Labels: labels},
			Spec:       corev1.PodSpec{SchedulingGroup: group},
		}
	}
	in := func(gang string) map[string]string { return map[string]string{gangapi.Label: gang, "team": "a"} }
	field := func(gang string) *corev1.PodSchedulingGroup { return &corev1.PodSchedulingGroup{PodGroupName: &gang} }
	const stays, differs = "and stays in it", "name different gangs"
	for name, c := range map[string]struct {
		old, next runtime.Object
		says      string
	}{
		"created in a gang":                         {next: pod(in("a"), nil)},
		"created without labels":                    {next: pod(nil, nil)},
		"created with the field alone":              {next: pod(nil, field("a"))},
		"created with an empty field":               {next: pod(in("a"), &corev1.PodSchedulingGroup{})},
		"created with label and field":              {next: pod(in("a"), field("a"))},
		"created with a label unlike the field":     {next: pod(in("a"), field("b")), says: differs},
		"to another gang":                           {old: pod(in("a"), nil), next: pod(in("b"), nil), says: stays},
		"out of its gang":                           {old: pod(in("a"), nil), next: pod(map[string]string{"team": "a"}, nil), says: stays},
		"out of its gang, with all labels":          {old: pod(in("a"), nil), next: pod(nil, nil), says: stays},
		"into a gang":                               {old: pod(nil, nil), next: pod(in("a"), nil), says: stays},
		"a label for the gang of its field":         {old: pod(nil, field("a")), next: pod(in("a"), field("a")), says: stays},
		"another label":                             {old: pod(in("a"), nil), next: pod(map[string]string{gangapi.Label: "a"}, nil)},
		"nothing of its labels":                     {old: pod(nil, nil), next: pod(nil, nil)},
		"one that was created before the policies":  {old: pod(in("a"), field("b")), next: pod(in("a"), field("b"))},
		"an empty label":                            {next: pod(in(""), field("a"))},
		"from an empty label to a gang":             {old: pod(in(""), nil), next: pod(in("a"), nil), says: stays},
		"created in a gang by whoever may anything": {next: pod(in("a"), field("b")), says: differs},
	} {
		w := write{
			by:       tenant,
			resource: corev1.SchemeGroupVersion.WithResource("pods"),
			kind:     "Pod",
			old:      c.old,
			next:     c.next,
		}
		says(t, name, admit(t, plugin, w), c.says)
		if c.old != nil { // the API server stores labels of a status write
			w.subresource = "status"
			says(t, name+", by its status", admit(t, plugin, w), c.says)
		}
	}
}

// A binding puts its labels over those of the pod, by either of its addresses.
func TestPolicies_GangMembersBindings(t *testing.T) {
	const changes = "a binding changes nothing about a pod's gang"
	plugin := admissionOf(t, "gangmembers.lockstep.dev")
	for name, c := range map[string]struct {
		labels map[string]string
		says   string
	}{
		"no labels":   {nil, ""},
		"other label": {map[string]string{"topology.kubernetes.io/zone": "a"}, ""},
		"empty label": {map[string]string{gangapi.Label: ""}, changes},
		"a gang":      {map[string]string{gangapi.Label: "a"}, changes},
	} {
		for resource, subresource := range map[string]string{"pods": "binding", "bindings": ""} {
			says(t, name+", "+resource, admit(t, plugin, write{
				by:          scheduler,
				resource:    corev1.SchemeGroupVersion.WithResource(resource),
				subresource: subresource,
				kind:        "Binding",
				next: &corev1.Binding{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
					ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x", Labels: c.labels},
				},
			}), c.says)
		}
	}
}

// The priority of a custom resource is written by the scheduler. A right in one namespace, even to everything, is not
// enough.
func TestPolicies_GangPriorities(t *testing.T) {
	plugin := admissionOf(t, "gangpriorities.lockstep.dev")
	group := func(spec map[string]any) runtime.Object {
		spec["schedulingPolicy"] = map[string]any{"gang": map[string]any{"minCount": int64(4)}}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": gangapi.Resources.Version().String(), "kind": gangapi.Kind,
			"metadata": map[string]any{"namespace": "team-a", "name": "x"}, "spec": spec,
		}}
	}
	with := func(priority int64) runtime.Object { return group(map[string]any{"priority": priority}) }
	without := group(map[string]any{})
	const refusal = "spec.priority is written by the scheduler"
	for name, c := range map[string]struct {
		by        string
		old, next runtime.Object
		says      string
	}{
		"a tenant creates without":         {tenant, nil, without, ""},
		"a tenant creates with one":        {tenant, nil, with(1_000_000), refusal},
		"a tenant creates with 0":          {tenant, nil, with(0), refusal},
		"a tenant creates with a class":    {tenant, nil, group(map[string]any{"priorityClassName": "urgent"}), ""},
		"a tenant adds one":                {tenant, without, with(7), refusal},
		"a tenant changes one":             {tenant, with(7), with(8), refusal},
		"a tenant changes something else":  {tenant, with(7), with(7), ""},
		"a tenant changes one without":     {tenant, without, without, ""},
		"the scheduler adds one":           {scheduler, without, with(7), ""},
		"the scheduler creates with one":   {scheduler, nil, with(7), ""},
		"an account without rights writes": {"system:serviceaccount:lockstep-system:lockstep-controller", without, with(7), refusal},
	} {
		w := write{by: c.by, resource: gangapi.Resources.Resource(), kind: gangapi.Kind, old: c.old, next: c.next}
		says(t, name, admit(t, plugin, w), c.says)
	}
}

// A held lease of Kubeflow Trainer's name stops the controller, so only controllers of TrainJobs may write it. A right
// in one namespace, even to everything, is not enough; other leases are written as before.
func TestPolicies_TrainerLeases(t *testing.T) {
	plugin := admissionOf(t, "trainerleases.lockstep.dev")
	const (
		controller = "system:serviceaccount:lockstep-system:lockstep-controller"
		trainer    = "trainer.kubeflow.org"
		refusal    = "only a controller of TrainJobs writes it"
	)
	lease := func(name, holder string) runtime.Object {
		return &coordinationv1.Lease{
			TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}
	}
	for name, c := range map[string]struct {
		by, lease string
		renews    bool
		says      string
	}{
		"a tenant creates it":          {by: tenant, lease: trainer, says: refusal},
		"a tenant renews it":           {by: tenant, lease: trainer, renews: true, says: refusal},
		"a tenant creates another":     {by: tenant, lease: "mine"},
		"a tenant renews another":      {by: tenant, lease: "mine", renews: true},
		"Kubeflow Trainer creates it":  {by: upstream, lease: trainer},
		"Kubeflow Trainer renews it":   {by: upstream, lease: trainer, renews: true},
		"the controller takes it over": {by: controller, lease: trainer, renews: true},
		"the scheduler creates it":     {by: scheduler, lease: trainer, says: refusal},
	} {
		w := write{
			by: c.by, resource: coordinationv1.SchemeGroupVersion.WithResource("leases"), kind: "Lease",
			name: c.lease, next: lease(c.lease, "b"),
		}
		if c.renews {
			w.old = lease(c.lease, "a")
		}
		says(t, name, admit(t, plugin, w), c.says)
	}
}
