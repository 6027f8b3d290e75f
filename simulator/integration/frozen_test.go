package integration_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// frozenIn are the FrozenTrainJobs of a namespace's TrainJobs.
func frozenIn(t *testing.T, namespace string) []unstructured.Unstructured {
	t.Helper()
	all, err := shared.Dynamic.Resource(frozenJobs).Namespace("lockstep-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var found []unstructured.Unstructured
	for _, state := range all.Items {
		if of, _, _ := unstructured.NestedString(state.Object, "spec", "trainJob", "namespace"); of == namespace {
			found = append(found, state)
		}
	}
	return found
}

// frozenOf is the FrozenTrainJob of a TrainJob; an empty object if there is none.
func frozenOf(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	for _, state := range frozenIn(t, namespace) {
		if of, _, _ := unstructured.NestedString(state.Object, "spec", "trainJob", "name"); of == name {
			return &state
		}
	}
	return &unstructured.Unstructured{}
}

// The copy of a runtime that a controller of the previous version made is trusted, by the API server's own metadata: it
// is not younger than the job's JobSet, and only a controller could write its owner. One that a tenant puts in its
// place is not.
func TestFrozenTrainJob_AdoptsOnlyWhatAControllerMade(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	scheme, err := controller.Scheme(offered().API())
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := client.New(
		as("system:serviceaccount:lockstep-system:lockstep-controller"),
		client.Options{Scheme: scheme},
	)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := client.New(
		shared.Admin,
		client.Options{Scheme: scheme},
	) // it has the objects that the controller lists
	if err != nil {
		t.Fatal(err)
	}
	resolver := resolve.New(cache, earlier, "lockstep-system")
	// Another controller's, so that this one leaves it to the test.
	kept(t, trainJobs, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: earlier, namespace: `+namespace+`}
spec: {suspend: true, managedBy: kueue.x-k8s.io/multikueue, runtimeRef: {name: torch-distributed}}
`)
	var job trainerv1alpha1.TrainJob
	if err := earlier.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "earlier"}, &job); err != nil {
		t.Fatal(err)
	}
	found, err := resolver.Find(t.Context(), &job)
	if err != nil || found.Decisions != nil {
		t.Fatalf("a job that was never rendered: decisions %v (%v)", found.Decisions, err)
	}
	planned, err := plan.New(&job, found.Runtime, plan.Options{Gang: true})
	if err != nil {
		t.Fatal(err)
	}
	runtime, ok := found.Live.DeepCopyObject().(*trainerv1alpha1.ClusterTrainingRuntime)
	if !ok {
		t.Fatalf("the runtime is a %T", found.Live)
	}
	runtime.SetGroupVersionKind(trainerv1alpha1.GroupVersion().WithKind("ClusterTrainingRuntime"))
	copyWith := func(nodes int32, owners []metav1.OwnerReference) *corev1.ConfigMap {
		runtime.Spec.MLPolicy.NumNodes = new(nodes)
		content, err := yaml.Marshal(runtime)
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:       namespace,
				Name:            "earlier-runtime-snapshot",
				OwnerReferences: owners,
			},
			Immutable: new(true),
			Data:      map[string]string{"runtime": string(content)},
		}
	}
	// A waiting job whose copy is not trusted is rendered anew, by the current decisions.
	nodesFound := func() int32 {
		t.Helper()
		found, err := resolver.Find(t.Context(), &job)
		believed := found.Disbelieved == ""
		if err != nil || (found.Decisions != nil) != believed || believed && !found.Decisions.GangByDefault {
			t.Fatalf(
				"decisions %v (%v), believed %t, want those of the JobSet if it is",
				found.Decisions,
				err,
				believed,
			)
		}
		t.Logf("%d nodes; disbelieved: %q", *found.Runtime.Spec.MLPolicy.NumNodes, found.Disbelieved)
		return *found.Runtime.Spec.MLPolicy.NumNodes
	}
	genuine := copyWith(7, plan.Owners(&job))
	if err := earlier.Create(t.Context(), genuine); err != nil {
		t.Fatal(err)
	}
	if err := earlier.Create(t.Context(), planned.JobSet); err != nil {
		t.Fatal(err)
	}
	if got := nodesFound(); got != 7 {
		t.Errorf("%d nodes, want the 7 of the copy", got)
	}

	tenants := tenant(t, namespace).CoreV1().ConfigMaps(namespace)
	testcluster.Within(t, 10*time.Second, "the tenant's role", func() bool {
		_, err := tenants.Get(t.Context(), genuine.Name, metav1.GetOptions{})
		return err == nil
	})
	if err := tenants.Delete(t.Context(), genuine.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = tenants.Create(t.Context(), copyWith(99, plan.Owners(&job)), metav1.CreateOptions{})
	wantForbidden(t, err, "only a controller of TrainJobs says")
	if _, err := tenants.Create(t.Context(), copyWith(99, nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := nodesFound(); got == 99 {
		t.Error("a tenant's copy is believed")
	}
	// Even with the policy away, one that is younger than the JobSet is not.
	if err := tenants.Delete(t.Context(), genuine.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(planned.JobSet.CreationTimestamp.Add(1100 * time.Millisecond)))
	if err := earlier.Create(t.Context(), copyWith(99, plan.Owners(&job))); err != nil {
		t.Fatal(err)
	}
	if got := nodesFound(); got == 99 {
		t.Error("a copy that is younger than the JobSet is believed")
	}
}
