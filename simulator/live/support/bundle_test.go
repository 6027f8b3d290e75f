package support_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/live/support"
)

const namespace = "lockstep-system"

// secret has no form that says that it is one.
const secret = "plainly-mine"

// objects are an installation, its Secret, and a pod of a user's, with the secret wherever users put one.
func objects() []runtime.Object {
	container := corev1.Container{
		Name:  "main",
		Image: "example.com/a:1",
		Args:  []string{"--gang-default=on"},
		Env:   []corev1.EnvVar{{Name: "K", Value: secret}},
	}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace,
			Name:      name,
			Labels: map[string]string{
				"app.kubernetes.io/part-of": "lockstep",
				"app.kubernetes.io/name":    "lockstep-controller",
			},
			Annotations: map[string]string{"example.com/login": secret},
		}
	}
	users := corev1.Container{Name: "main", Command: []string{"train", secret}, Args: []string{"--key=" + secret}}
	return []runtime.Object{
		&appsv1.Deployment{
			ObjectMeta: named(namespace, "lockstep-controller"),
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
			}},
		},
		&corev1.Pod{
			ObjectMeta: named(
				namespace,
				"lockstep-controller-0",
			),
			Spec:   corev1.PodSpec{Containers: []corev1.Container{container}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 1}}},
		},
		&corev1.Secret{ObjectMeta: named(namespace, "certificate"), StringData: map[string]string{"tls.key": secret}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-others"},
			Data:       map[string]string{"k": secret},
		},
		&corev1.ConfigMap{
			ObjectMeta: named(namespace, "lockstep-scheduler"),
			Data:       map[string]string{"profile.yaml": "x"},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-others"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{users}},
			Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}}},
		},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-others"}, Message: secret,
			InvolvedObject: corev1.ObjectReference{Name: "of-others"},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:   "team",
				Name:        "rank-0",
				Annotations: map[string]string{"login": secret},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{users}},
		},
	}
}

// gathered gathers a bundle of that cluster. denied is a resource that must not be listed.
func gathered(t *testing.T, denied string) support.Bundle {
	t.Helper()
	client := fake.NewSimpleClientset(objects()...)
	client.PrependReactor(
		"create",
		"selfsubjectaccessreviews",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			return true, action.(clienttesting.CreateAction).GetObject(), nil
		},
	)
	untyped := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme.Scheme, lists(), objects()...)
	untyped.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource()
		switch {
		case resource.Resource == "secrets":
			t.Error("Secrets are read")
		case resource.Resource == denied:
			return true, nil, apierrors.NewForbidden(resource.GroupResource(), "", errors.New("not you"))
		case !action.(clienttesting.ListAction).GetListRestrictions().Fields.Empty(): // the fake does not know them
			return true, nil, apierrors.NewNotFound(resource.GroupResource(), "")
		case resource.Group != "" && resource.Group != "apps":
			return true, nil, apierrors.NewNotFound(resource.GroupResource(), "")
		}
		return false, nil, nil
	})
	bundle, err := support.Gather(t.Context(), support.Cluster{
		Client: client, Dynamic: untyped, Snapshots: capture.Cluster{Version: "v1.37.2", Dynamic: untyped},
	}, support.Options{Taken: time.Unix(0, 0), Version: "v1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// lists are the kinds of lists that the fake client has to know, though the reactor says that they are not served.
func lists() map[schema.GroupVersionResource]string {
	known := map[schema.GroupVersionResource]string{}
	for group, resources := range map[schema.GroupVersion][]string{
		{Group: "scheduling.lockstep.dev", Version: "v1beta1"}: {"podgroups"},
		{Group: "trainer.kubeflow.org", Version: "v1alpha1"}:   {"trainjobs", "trainingruntimes", "clustertrainingruntimes"},
		{Group: "jobset.x-k8s.io", Version: "v1alpha2"}:        {"jobsets"},
		{Group: "apiextensions.k8s.io", Version: "v1"}:         {"customresourcedefinitions"},
		{Group: "state.lockstep.dev", Version: "v1alpha1"}:     {"frozentrainjobs"},
		{Group: "resource.nvidia.com", Version: "v1beta1"}:     {"computedomains"},
		{Group: "kueue.x-k8s.io", Version: "v1beta2"}: {
			"clusterqueues", "localqueues", "resourceflavors", "topologies", "workloads",
		},
	} {
		for _, resource := range resources {
			known[group.WithResource(resource)] = "List"
		}
	}
	return known
}

func TestGather_HasNoSecret(t *testing.T) {
	bundle := gathered(t, "")
	var names []string
	for _, part := range bundle.Parts {
		names = append(names, part.Name)
		if bytes.Contains(part.Content, []byte(secret)) {
			t.Errorf("%s has the secret:\n%s", part.Name, part.Content)
		}
	}
	want := []string{
		"README.txt",
		"doctor.json",
		"doctor.txt",
		"logs/lockstep-system/lockstep-controller-0-main-before.log",
		"logs/lockstep-system/lockstep-controller-0-main.log",
		"objects/installation/configmaps.yaml",
		"objects/installation/deployments.apps.yaml",
		"objects/installation/pods.yaml",
		"snapshot.json.gz",
	}
	if !slices.Equal(names, want) {
		t.Errorf("it has %q, want %q", names, want)
	}
	for _, part := range bundle.Parts {
		if part.Name == "objects/installation/deployments.apps.yaml" &&
			!strings.Contains(string(part.Content), "--gang-default=on") {
			t.Errorf("the arguments of the installation are not there:\n%s", part.Content)
		}
		if part.Name != "snapshot.json.gz" {
			continue
		}
		snapshot, err := capture.Read(bytes.NewReader(part.Content), part.Name)
		if err != nil || len(snapshot.Pods) != 3 {
			t.Fatalf("%d pods (%v)", len(snapshot.Pods), err)
		}
		if found := snapshot.Pods[2].Spec.Containers[0]; !slices.Equal(
			found.Command,
			[]string{"(removed)", "(removed)"},
		) ||
			!slices.Equal(found.Args, []string{"(removed)"}) {
			t.Errorf("the snapshot has command %q and arguments %q", found.Command, found.Args)
		}
	}
}

// A forbidden part is missing, which the bundle reports, and no other part is.
func TestGather_SaysWhatIsMissing(t *testing.T) {
	bundle := gathered(t, "deployments")
	if len(bundle.Missing) != 1 || !strings.Contains(bundle.Missing[0], "deployments.apps") ||
		!strings.Contains(string(bundle.Parts[0].Content), bundle.Missing[0]) {
		t.Errorf("missing: %q\n%s", bundle.Missing, bundle.Parts[0].Content)
	}
	if bundle = gathered(t, "pods"); len(bundle.Missing) != 2 {
		t.Errorf("without the pods, it misses %q, want them and the snapshot", bundle.Missing)
	}
}
