package admission_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/lockstep-project/lockstep/controller/admission"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// broken panics.
type broken struct{}

func (broken) Current(context.Context, *trainerv1alpha1.TrainJob) (resolve.Found, error) {
	panic("nobody thought of this")
}

func (broken) Find(context.Context, *trainerv1alpha1.TrainJob) (resolve.Found, error) {
	panic("nobody thought of this")
}

// TestWebhooks sends requests to a webhook server.
func TestWebhooks(t *testing.T) {
	const (
		good  = `{"apiVersion":"trainer.kubeflow.org/v1alpha1","metadata":{"name":"train"},"spec":{"runtimeRef":{"name":"rt"}}}`
		twos  = `{"apiVersion":"trainer.kubeflow.org/v2alpha1","metadata":{"name":"train"},"spec":{"runtimeRef":{"name":"rt"},"runtimePatches":[{"manager":"a.io/b"}]}}`
		wrong = `{"metadata":{"name":"train"},"spec":{"trainer":{"numNodes":"two"}}}`
		going = `{"metadata":{"name":"train","deletionTimestamp":"2026-11-22T11:00:00Z"},"spec":{"trainer":{"numNodes":"two"}}}`
		twice = `{"metadata":{"name":"rt","labels":{"trainer.kubeflow.org/support":"deprecated"}},"spec":{"template":{"spec":{"replicatedJobs":[{"name":"node","replicas":2,"template":{"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},"spec":{"template":{"spec":{"containers":[{"name":"node"}]}}}}}]}}}}`
		fault = "spec.template.spec.replicatedJobs[0].replicas: Invalid value: 2: always must be 1"
	)
	stamped := `[{"op":"add","path":"/spec/runtimePatches/0/time","value":"2026-11-22T12:00:00Z"}]`
	for name, c := range map[string]struct {
		path      string
		runtimes  admission.Runtimes
		operation admissionv1.Operation
		status    string // the subresource
		old, next string
		code      int32
		message   string
		patch     string
		warned    bool
	}{
		"defaulting without a change":          {path: admission.DefaultTrainJobPath, next: good, code: 200},
		"defaulting of v2alpha1":               {path: admission.DefaultTrainJobPath, next: twos, code: 200, patch: stamped},
		"defaulting of status":                 {path: admission.DefaultTrainJobPath, next: twos, status: "status", code: 200},
		"defaulting of a deletion":             {path: admission.DefaultTrainJobPath, operation: admissionv1.Delete, old: twos, code: 200},
		"defaulting of what is no TrainJob":    {path: admission.DefaultTrainJobPath, next: wrong, code: 400, message: "not a TrainJob: spec.trainer.numNodes: "},
		"defaulting of what is going":          {path: admission.DefaultTrainJobPath, old: wrong, next: going, code: 200},
		"a good TrainJob":                      {path: admission.ValidateTrainJobPath, next: twos, code: 200},
		"a TrainJob without its runtime":       {path: admission.ValidateTrainJobPath, runtimes: missing(), next: good, code: 403, message: "spec.runtimeRef: Invalid value: "},
		"an update without its runtime":        {path: admission.ValidateTrainJobPath, runtimes: missing(), old: good, next: good, code: 200},
		"what is no TrainJob":                  {path: admission.ValidateTrainJobPath, next: wrong, code: 400, message: "parsing the Kind: json: "},
		"what is no TrainJob and going":        {path: admission.ValidateTrainJobPath, old: wrong, next: going, code: 200},
		"what was no TrainJob":                 {path: admission.ValidateTrainJobPath, old: wrong, next: good, code: 200},
		"a runtime that cannot be read":        {path: admission.ValidateTrainJobPath, runtimes: finds{err: errors.New("lost")}, next: good, code: 500, message: "finding the runtime of TrainJob train: lost"},
		"a panic":                              {path: admission.ValidateTrainJobPath, runtimes: broken{}, next: good, code: 500, message: "panic: nobody thought of this "},
		"a new TrainingRuntime":                {path: admission.ValidateRuntimePath, next: twice, code: 403, message: fault},
		"a changed TrainingRuntime":            {path: admission.ValidateRuntimePath, old: good, next: twice, code: 200},
		"a new ClusterTrainingRuntime":         {path: admission.ValidateClusterRuntimePath, next: twice, code: 403, message: fault, warned: true},
		"a changed ClusterTrainingRuntime":     {path: admission.ValidateClusterRuntimePath, old: good, next: twice, code: 403, message: fault},
		"a ClusterTrainingRuntime as it stood": {path: admission.ValidateClusterRuntimePath, old: twice, next: twice, code: 200},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if c.runtimes == nil {
				c.runtimes = there(t)
			}
			switch {
			case c.operation != "":
			case c.old != "":
				c.operation = admissionv1.Update
			default:
				c.operation = admissionv1.Create
			}
			server := webhook.NewServer(webhook.Options{})
			admission.Register(
				server,
				newValidator(t, c.runtimes),
				&admission.Defaulter{Clock: clocktesting.NewFakePassiveClock(now())},
			)
			got := send(t, server, c.path, &admissionv1.AdmissionRequest{
				UID:         "1",
				Operation:   c.operation,
				Kind:        metav1.GroupVersionKind{Kind: "Kind"},
				SubResource: c.status,
				Object: runtime.RawExtension{
					Raw: []byte(cmp.Or(c.next, "null")),
				},
				OldObject: runtime.RawExtension{Raw: []byte(cmp.Or(c.old, "null"))},
			})
			if got.Allowed != (c.code == 200) || got.Result.Code != c.code ||
				!strings.HasPrefix(got.Result.Message, c.message) ||
				(got.Result.Reason == metav1.StatusReasonForbidden) != (c.code == 403) {
				t.Errorf("answered %t, %+v; want %d %s", got.Allowed, got.Result, c.code, c.message)
			}
			if string(got.Patch) != c.patch || (len(got.Warnings) > 0) != c.warned || got.UID != "1" {
				t.Errorf(
					"answered %s with patch %s and warnings %q, want %s",
					got.UID,
					got.Patch,
					got.Warnings,
					c.patch,
				)
			}
		})
	}
}

// A controller that serves some namespaces lets the objects of others pass unchanged, also those that it would change
// or refuse. Objects without a namespace are handled by all.
func TestWebhooks_OtherNamespacesPass(t *testing.T) {
	const unstamped = `{"metadata":{"name":"train"},"spec":{"runtimeRef":{"name":"rt"},"runtimePatches":[{"manager":"a.io/b"}]}}`
	server := webhook.NewServer(webhook.Options{})
	validator := newValidator(t, missing())
	validator.Class.Namespaces = []string{"served"}
	admission.Register(server, validator, &admission.Defaulter{Clock: clocktesting.NewFakePassiveClock(now())})
	for _, path := range []string{admission.DefaultTrainJobPath, admission.ValidateTrainJobPath} {
		for namespace, passes := range map[string]bool{"served": false, "other": true, "": false} {
			got := send(t, server, path, &admissionv1.AdmissionRequest{
				Operation: admissionv1.Create,
				Namespace: namespace,
				Object:    runtime.RawExtension{Raw: []byte(unstamped)},
			})
			if untouched := got.Allowed && len(got.Patch) == 0; untouched != passes {
				t.Errorf("%s in %q: allowed %t with patch %s", path, namespace, got.Allowed, got.Patch)
			}
		}
	}
}

func send(
	t *testing.T, server webhook.Server, path string, request *admissionv1.AdmissionRequest,
) *admissionv1.AdmissionResponse {
	t.Helper()
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	post := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	post.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	server.WebhookMux().ServeHTTP(answer, post)
	if answer.Code != http.StatusOK {
		t.Fatalf("%s answered %d: %s", path, answer.Code, answer.Body)
	}
	if err = json.Unmarshal(answer.Body.Bytes(), &review); err != nil {
		t.Fatal(err)
	}
	return review.Response
}
