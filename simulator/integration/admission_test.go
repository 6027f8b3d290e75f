package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"
)

// submitted is the result of an object that was sent to the API server without being stored.
type submitted struct {
	code int32
	text string
}

// tryCreate creates an object of a YAML document as a dry run: schema, CEL rules and webhooks answer, nothing is
// stored.
func tryCreate(t *testing.T, document string) submitted {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatal(err)
	}
	resource := object.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(object.GetKind()) + "s")
	_, err := shared.Dynamic.Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), &object,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return answerOf(t, err)
}

func answerOf(t *testing.T, err error) submitted {
	t.Helper()
	if err == nil {
		return submitted{code: http.StatusOK}
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		t.Fatal(err)
	}
	return submitted{code: status.Status().Code, text: status.Status().Message}
}

// Each refusal has the code of its origin and a reason: the schema and its rules return 422, the webhook 403.
func TestAdmission_RefusesWithCodeAndReason(t *testing.T) {
	job := func(name, spec string) string {
		return fmt.Sprintf("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"+
			"metadata: {name: %s, namespace: default}\nspec: %s\n", name, spec)
	}
	for name, c := range map[string]struct {
		document string
		code     int32
		text     string
	}{
		"a good job": {job("good", "{runtimeRef: {name: torch-distributed}}"), 200, ""},
		"a name that is no DNS label": {
			job("1st", "{runtimeRef: {name: torch-distributed}}"), 422, "metadata.name must match RFC 1035 DNS label format",
		},
		"a field that does not exist": {
			job("strict", "{runtimeRef: {name: torch-distributed}, runtimePatch: []}"), 400, "runtimePatch",
		},
		"another manager": {
			job("managed", "{runtimeRef: {name: torch-distributed}, managedBy: me}"), 422,
			"ManagedBy must be trainer.kubeflow.org/trainjob-controller, kueue.x-k8s.io/multikueue or lockstep.dev/trainjob-controller if set",
		},
		"no time to run": {
			job("late", "{runtimeRef: {name: torch-distributed}, activeDeadlineSeconds: 0}"), 422, "greater than or equal to 1",
		},
		"a source that is no URI": {
			job("uri", "{runtimeRef: {name: torch-distributed}, initializer: {dataset: {storageUri: data}}}"), 422,
			"storageUri may be empty, or it must be a valid URI (scheme://...)",
		},
		"two patches of one manager": {
			job("twice", "{runtimeRef: {name: torch-distributed}, runtimePatches: [{manager: a.b/c}, {manager: a.b/c}]}"), 422,
			"Duplicate value",
		},
		"no such runtime": {
			job("lost", "{runtimeRef: {name: missing}}"), 403,
			"specified clusterTrainingRuntime must be created before the TrainJob is created",
		},
		"no such kind of runtime": {
			job("odd", "{runtimeRef: {name: a, kind: Recipe}}"), 403, "unsupported runtime: Recipe.trainer.kubeflow.org",
		},
		"a reserved variable": {
			job("env", "{runtimeRef: {name: torch-distributed}, trainer: {env: [{name: PET_NNODES, value: '9'}]}}"), 403,
			"must not have reserved envs, invalid envs configured: [PET_NNODES]",
		},
		"an initializer that the runtime lacks": {
			job("init", "{runtimeRef: {name: torch-distributed}, initializer: {model: {storageUri: 'hf://a/b'}}}"), 403,
			"must have model-initializer job when trainJob is configured with input modelConfig",
		},
		"a patch of nobody": {
			job("nobody", "{runtimeRef: {name: torch-distributed}, runtimePatches: [{manager: me}]}"), 403,
			"must be a domain-prefixed path",
		},
		"an annotation with a bad value": {
			strings.Replace(job("wish", "{runtimeRef: {name: torch-distributed}}"), "namespace: default",
				"namespace: default, annotations: {lockstep.dev/gang: 'on', lockstep.dev/spares: some}", 1), 403,
			"metadata.annotations[lockstep.dev/spares]: Invalid value: \"some\": must be an integer of at least 0",
		},
		"an annotation that is none": {
			strings.Replace(job("typo", "{runtimeRef: {name: torch-distributed}}"), "namespace: default",
				"namespace: default, annotations: {lockstep.dev/spare: '1'}", 1), 403, "there is no such annotation",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tryCreate(t, c.document)
			if got.code != c.code || !strings.Contains(got.text, c.text) {
				t.Errorf("%d %s\nwant %d with %q", got.code, got.text, c.code, c.text)
			}
		})
	}
}

// kept creates an object and deletes it when the test is over.
func kept(t *testing.T, resource schema.GroupVersionResource, document string) *unstructured.Unstructured {
	t.Helper()
	object := objectOf(t, document)
	client := shared.Dynamic.Resource(resource).Namespace(object.GetNamespace())
	stored, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		background := metav1.DeletePropagationBackground
		ctx := context.WithoutCancel(t.Context()) // the test's own has ended by now
		err := client.Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return stored
}

// An older client reads a job and writes back the fields that it knows. Unknown fields must not be lost, and a
// different spelling of the same value is no change.
func TestTrainJob_OlderClientLosesNothing(t *testing.T) {
	stored := kept(t, trainJobs, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: older-client, namespace: default}
spec:
  suspend: true
  runtimeRef: {name: torch-distributed}
  trainer:
    args: []
    env: []
    resourcesPerNode: {limits: {nvidia.com/gpu: 4}}
    resourceClaimsPerNode: [{name: nics, resourceClaimTemplateName: four-nics}]
  runtimePatches:
  - manager: example.com/user
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [
      {name: node, template: {spec: {template: {spec: {terminationGracePeriodSeconds: 7}}}}}]}}}
`)
	// The controller writes the status once, and the update below must not meet that.
	eventually(t, "its status", func() bool {
		now, err := shared.Dynamic.Resource(trainJobs).
			Namespace("default").
			Get(t.Context(), "older-client", metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		stored = now
		return len(conditions) > 0
	})
	patches, _, _ := unstructured.NestedSlice(stored.Object, "spec", "runtimePatches")
	stamp, _, _ := unstructured.NestedString(patches[0].(map[string]any), "time")
	if stamp == "" {
		t.Error("the patch has no time")
	}
	var theirs, queue any
	for text, into := range map[string]*any{
		`{"manager": "example.com/user", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
			{"name": "node", "template": {"spec": {"template": {"spec": {}}}}}]}}}}`: &theirs,
		`{"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
			{"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}}]}}}}`: &queue,
	} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	jobs := shared.Dynamic.Resource(trainJobs).Namespace("default")
	var updated *unstructured.Unstructured
	eventually(t, "the update of an older client", func() bool {
		next, err := jobs.Get(t.Context(), "older-client", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, lost := range []string{"args", "env", "resourceClaimsPerNode"} {
			unstructured.RemoveNestedField(next.Object, "spec", "trainer", lost)
		}
		err = errors.Join(
			unstructured.SetNestedField(
				next.Object,
				"4",
				"spec",
				"trainer",
				"resourcesPerNode",
				"limits",
				"nvidia.com/gpu",
			),
			unstructured.SetNestedSlice(next.Object, []any{theirs, queue}, "spec", "runtimePatches"),
		)
		if err != nil {
			t.Fatal(err)
		}
		updated, err = jobs.Update(t.Context(), next, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) { // the controller may have written the status meanwhile
			t.Fatalf("the update of an older client: %v", err)
		}
		return err == nil
	})
	text, err := json.Marshal(updated.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"terminationGracePeriodSeconds":7`, `"args":[]`, `"nodeSelector":{"a":"b"}`, `"time":"` + stamp + `"`,
		`"resourceClaimTemplateName":"four-nics"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

// A real change of an immutable field is refused by the rule of the schema; a patch, by the webhook, while the job
// runs.
func TestTrainJob_ImmutableFieldsAreRefused(t *testing.T) {
	kept(t, trainJobs, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: unchanging, namespace: default}
spec: {runtimeRef: {name: torch-distributed}, trainer: {numNodes: 2}}
`)
	eventually(t, "its JobSet", func() bool {
		_, err := shared.Dynamic.Resource(jobsetv1alpha2.GroupVersion.WithResource("jobsets")).Namespace("default").
			Get(t.Context(), "unchanging", metav1.GetOptions{})
		return err == nil
	})
	for name, c := range map[string]struct {
		patch string
		code  int32
		text  string
	}{
		"its trainer":      {`{"spec":{"trainer":{"numNodes":3}}}`, 422, "field is immutable"},
		"its image":        {`{"spec":{"trainer":{"image":"another"}}}`, 422, "field is immutable"},
		"its runtime":      {`{"spec":{"runtimeRef":{"name":"plain"}}}`, 422, "field is immutable"},
		"a patch":          {`{"spec":{"runtimePatches":[{"manager":"a.b/c"}]}}`, 403, "RuntimePatches can only be modified when"},
		"suspension":       {`{"spec":{"suspend":true}}`, 200, ""},
		"its labels":       {`{"metadata":{"labels":{"a":"b"}}}`, 200, ""},
		"its annotation":   {`{"metadata":{"annotations":{"lockstep.dev/spares":"-1"}}}`, 403, "lockstep.dev/spares"},
		"its trainer gone": {`{"spec":{"trainer":null}}`, 422, "field is immutable"},
		"a deadline":       {`{"spec":{"activeDeadlineSeconds":9}}`, 422, "field is immutable"},
		"its gang": {
			`{"metadata":{"annotations":{"lockstep.dev/gang":"off"}}}`, 403, "cannot change any more, because the job has a JobSet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := shared.Dynamic.Resource(trainJobs).Namespace("default").Patch(t.Context(), "unchanging",
				types.MergePatchType, []byte(c.patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			if got := answerOf(t, err); got.code != c.code || !strings.Contains(got.text, c.text) {
				t.Errorf("%d %s\nwant %d with %q", got.code, got.text, c.code, c.text)
			}
		})
	}
}

// A job whose runtime is deleted can be suspended, resumed and labeled: it has a copy.
func TestTrainJob_OutlivesItsRuntime(t *testing.T) {
	runtimes := schema.GroupVersionResource{
		Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainingruntimes",
	}
	kept(t, runtimes, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: short-lived, namespace: default}
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
	kept(t, trainJobs, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: outliving, namespace: default, annotations: {simulator.lockstep.dev/run-time: 60s}}
spec: {suspend: true, runtimeRef: {kind: TrainingRuntime, name: short-lived}}
`)
	eventually(t, "the job's frozen runtime", func() bool {
		kind, _, _ := unstructured.NestedString(frozenOf(t, "default", "outliving").Object, "spec", "runtime", "kind")
		return kind == "TrainingRuntime"
	})
	err := shared.Dynamic.Resource(runtimes).
		Namespace("default").
		Delete(t.Context(), "short-lived", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, patch := range []string{
		`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"runtimePatches":[{"manager":"a.b/c"}]}}`, `{"spec":{"suspend":false}}`,
	} {
		_, err = shared.Dynamic.Resource(trainJobs).Namespace("default").Patch(t.Context(), "outliving",
			types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Errorf("%s: %v", patch, err)
		}
	}
	eventually(t, "the job's pod", func() bool {
		pods, err := shared.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{
			LabelSelector: "jobset.sigs.k8s.io/jobset-name=outliving",
		})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning
	})
}
