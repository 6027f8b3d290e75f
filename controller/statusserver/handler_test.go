package statusserver_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

func TestAReportIsWrittenAndEchoed(t *testing.T) {
	w := newWorld(t, family("train")...)
	code, body := w.post("train", token("train-pod", "train"), progress(40))
	if code != http.StatusOK || body != progress(40) {
		t.Errorf("answer %d %s, want the echo", code, body)
	}
	want := &trainerv1alpha1.TrainerStatus{
		ProgressPercentage: new(int32(40)), EstimatedRemainingSeconds: new(int32(60)),
		Metrics:         []trainerv1alpha1.Metric{{Name: "loss", Value: "0.1"}},
		LastUpdatedTime: metav1.NewTime(start()),
	}
	if diff := cmp.Diff(want, w.status("train")); diff != "" {
		t.Errorf("trainerStatus (-want +got):\n%s", diff)
	}

	// A report replaces the one before: what it does not say is gone.
	code, _ = w.post(
		"train",
		token("train-pod", "train"),
		`{"trainerStatus":{"lastUpdatedTime":"2026-11-22T10:00:05Z"}}`,
	)
	want = &trainerv1alpha1.TrainerStatus{LastUpdatedTime: metav1.NewTime(start().Add(5 * time.Second))}
	if diff := cmp.Diff(want, w.status("train")); diff != "" || code != http.StatusOK {
		t.Errorf("answer %d, trainerStatus after a second report (-want +got):\n%s", code, diff)
	}
	if n := w.reviews.Load(); n != 1 {
		t.Errorf("the token was reviewed %d times, want once", n)
	}
}

// Somebody else, a controller that was here before or a hand, may have written what a report replaces.
func TestAReportWinsOverOthers(t *testing.T) {
	w := newWorld(t, family("train")...)
	job := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"trainerStatus": map[string]any{
		"progressPercentage": int64(1), "lastUpdatedTime": "2026-11-22T09:00:00Z",
	}}}}
	job.SetGroupVersionKind(trainerv1alpha1.GroupVersion().WithKind(trainerv1alpha1.TrainJobKind))
	job.SetNamespace(namespace)
	job.SetName("train")
	err := w.cluster.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(job),
		client.FieldOwner("somebody-else"))
	if err != nil {
		t.Fatal(err)
	}
	code, body := w.post("train", token("train-pod", "train"), progress(40))
	if status := w.status("train"); code != http.StatusOK || *status.ProgressPercentage != 40 {
		t.Errorf("answer %d %s, status %+v", code, body, status)
	}
}

func TestAnswers(t *testing.T) {
	const path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/train/status"
	good := token("train-pod", "train")
	for name, test := range map[string]struct {
		method, path, token, body string
		code                      int
		message                   string
	}{
		"nothing to say":     {body: `{}`, code: 200},
		"null":               {body: `null`, code: 200},
		"a field from later": {body: `{"trainerStatus":null,"newer":[1]}`, code: 200},
		"no JSON":            {body: `{`, code: 422, message: "Invalid payload"},
		"empty":              {body: ``, code: 422, message: "Invalid payload"},
		"a list":             {body: `[]`, code: 422, message: "Invalid payload"},
		"a wrong type":       {body: `{"trainerStatus":{"progressPercentage":"40"}}`, code: 422, message: "Invalid payload"},
		"too many bits":      {body: `{"trainerStatus":{"progressPercentage":4294967296}}`, code: 422, message: "Invalid payload"},
		"no instant":         {body: `{"trainerStatus":{"lastUpdatedTime":"now"}}`, code: 422, message: "Invalid payload"},
		"a year too late":    {body: `{"trainerStatus":{"lastUpdatedTime":"9999-12-31T23:59:59-01:00"}}`, code: 422, message: "Invalid payload"},
		"more after it":      {body: `{}{}`, code: 422, message: "Invalid payload"},
		"64 KiB":             {body: `{}` + strings.Repeat(" ", 64<<10-2), code: 200},
		"more than 64 KiB":   {body: `{}` + strings.Repeat(" ", 64<<10-1), code: 413, message: "Payload too large"},
		"another method":     {method: http.MethodGet, code: 404, message: "Not found"},
		"a patch":            {method: http.MethodPatch, code: 404, message: "Not found"},
		"another path":       {path: "/", code: 404, message: "Not found"},
		"another version":    {path: strings.Replace(path, "v1alpha1", "v2alpha1", 1), code: 404, message: "Not found"},
		"more path":          {path: path + "/", code: 404, message: "Not found"},
		"no name":            {path: strings.Replace(path, "/train/", "//", 1), code: 404, message: "Not found"},
		"a hidden slash":     {path: strings.Replace(path, "/train/", "/a%2Ftrain/", 1), code: 404, message: "Not found"},
		"no token":           {token: "none", body: `{`, code: 403, message: "Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, family("train")...)
			if test.path == "" {
				test.path = path
			}
			if test.method == "" {
				test.method = http.MethodPost
			}
			if test.token == "" {
				test.token = good
			}
			response := w.send(test.method, test.path, test.token, test.body)
			var status metav1.Status
			if err := json.Unmarshal(response.Body.Bytes(), &status); err != nil {
				t.Fatalf("%s: %v", response.Body, err)
			}
			failure := status.Status == metav1.StatusFailure && status.Code == int32(test.code) && status.Reason != ""
			if response.Code != test.code || status.Message != test.message || failure != (test.code != 200) {
				t.Errorf("answer %d %s, want %d %q", response.Code, response.Body, test.code, test.message)
			}
			if w.status("train") != nil {
				t.Error("something was written")
			}
		})
	}
}

// What the API server says to a write decides the code.
func TestWhatTheWriteMeets(t *testing.T) {
	resource := schema.GroupResource{Group: trainerv1alpha1.Group, Resource: "trainjobs"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: trainerv1alpha1.Group, Kind: "TrainJob"}, "train",
		field.ErrorList{field.Invalid(field.NewPath("status", "trainerStatus", "progressPercentage"), 101, "too much")})
	for name, test := range map[string]struct {
		err           error
		code          int
		says, saysNot string
	}{
		"gone":    {err: apierrors.NewNotFound(resource, "train"), code: 404, says: "Train job not found"},
		"refused": {err: invalid, code: 422, says: "progressPercentage"},
		"a fault": {err: errors.New("connection to 10.0.0.1 refused"), code: 500, says: "Internal error", saysNot: "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, family("train")...)
			w.writing = func(string) error { return test.err }
			code, body := w.post("train", token("train-pod", "train"), progress(101))
			if code != test.code || !strings.Contains(body, test.says) ||
				test.saysNot != "" && strings.Contains(body, test.saysNot) {
				t.Errorf("answer %d %s, want %d with %q", code, body, test.code, test.says)
			}
		})
	}
}

func TestAPanicIsOneAnswer(t *testing.T) {
	w := newWorld(t, family("train")...)
	w.writing = func(string) error { panic("nobody thought of it") }
	if code, body := w.post("train", token("train-pod", "train"), progress(1)); code != 500 ||
		!strings.Contains(body, "Internal error") || strings.Contains(body, "thought") {
		t.Errorf("answer %d %s", code, body)
	}
	w.writing = nil
	if code, _ := w.post("train", token("train-pod", "train"), progress(1)); code != 200 {
		t.Errorf("the next report: %d", code)
	}
	want := `
# HELP lockstep_status_server_requests_total Requests to the status server, by HTTP code.
# TYPE lockstep_status_server_requests_total counter
lockstep_status_server_requests_total{code="200"} 1
lockstep_status_server_requests_total{code="500"} 1
`
	if err := testutil.GatherAndCompare(w.registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
