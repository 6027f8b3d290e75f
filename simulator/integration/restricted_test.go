package integration_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

const (
	// restrict has a namespace enforce Pod Security restricted, relax lets it enforce nothing.
	restrict = `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`
	relax    = `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":null}}}`
)

// enforce changes the labels of the test's namespace.
func enforce(t *testing.T, patch string) {
	t.Helper()
	_, err := shared.Client.CoreV1().Namespaces().
		Patch(t.Context(), namespaceOf(t), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// A TrainJob whose namespace refuses its pods reports that at once, and starts when it admits them.
func TestRestricted_RefusedPodsAreTold(t *testing.T) {
	makeNamespace(t, namespaceOf(t))
	enforce(t, restrict)
	submitMore(t, `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: careless, namespace: NAMESPACE}
spec: {runtimeRef: {name: plain}, trainer: {numNodes: 2}}
`)
	testcluster.Within(t, 10*time.Second, "the reason", func() bool {
		return strings.Contains(schedulingOf(t, namespaceOf(t), "careless").Reason,
			"enforces Pod Security restricted, which refuses the pods of node: allowPrivilegeEscalation != false")
	})
	if pods := podsOf(t.Context(), t, namespaceOf(t), "careless"); len(pods) > 0 {
		t.Errorf("there are %d pods", len(pods))
	}
	enforce(t, relax)
	testcluster.Within(t, 2*time.Minute, "the pods", func() bool {
		return len(podsOf(t.Context(), t, namespaceOf(t), "careless")) == 2 &&
			!strings.Contains(schedulingOf(t, namespaceOf(t), "careless").Reason, "Pod Security")
	})
}

// The API server lets the pods of each shipped runtime into a restricted namespace, if the chart has
// runtimes.restricted.
func TestRestricted_ShippedRuntimes(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	enforce(t, restrict)
	_, err := shared.Client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeflow-trainer-cache-initializer"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := render.Chart(render.Default().With("runtimes.restricted", true))
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, object := range rendered.Objects {
		if object.GetKind() == "ClusterTrainingRuntime" {
			names++
			letIn(t, object)
		}
	}
	if names < 19 {
		t.Errorf("%d runtimes", names)
	}
}

// letIn has the API server try the pods of a job that has a shipped runtime as its namespace's own.
func letIn(t *testing.T, shipped *unstructured.Unstructured) {
	t.Helper()
	namespace, name := namespaceOf(t), strings.ReplaceAll(shipped.GetName(), ".", "-")
	of := shipped.DeepCopy()
	of.SetKind("TrainingRuntime")
	of.SetNamespace(namespace)
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{
			"suspend": true, "trainer": map[string]any{"numNodes": int64(2)},
			"runtimeRef": map[string]any{"kind": of.GetKind(), "name": of.GetName()},
		},
	}}
	for _, object := range []*unstructured.Unstructured{of, job} {
		kind := trainJobs.GroupVersion().WithResource(strings.ToLower(object.GetKind()) + "s")
		testcluster.Within(t, 10*time.Second, object.GetKind()+" "+object.GetName(), func() bool {
			_, err := shared.Dynamic.Resource(kind).
				Namespace(namespace).
				Create(t.Context(), object, metav1.CreateOptions{})
			return err == nil
		})
	}
	var made jobsetv1alpha2.JobSet
	testcluster.Within(t, 10*time.Second, "the JobSet of "+name, func() bool {
		found, err := shared.Dynamic.Resource(jobsetv1alpha2.GroupVersion.WithResource("jobsets")).Namespace(namespace).
			Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &made) == nil
	})
	var claims []corev1.Volume // as JobSet's controller adds them
	for _, policy := range made.Spec.VolumeClaimPolicies {
		for _, claim := range policy.Templates {
			claims = append(claims, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
			}})
		}
	}
	for i := range made.Spec.ReplicatedJobs {
		template := made.Spec.ReplicatedJobs[i].Template.Spec.Template
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name = name + "-" + made.Spec.ReplicatedJobs[i].Name
		pod.Spec.Volumes = append(pod.Spec.Volumes, claims...)
		if pod.Spec.RestartPolicy == "" || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever // as JobSet's webhook has it
		}
		_, err := shared.Client.CoreV1().Pods(namespace).
			Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
