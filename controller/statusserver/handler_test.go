package statusserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/statusserver"
)

func TestHandler_WritesAndEchoesReport(t *testing.T) {
	w := newFixture(t, family("train")...)
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

	// A report replaces the previous one: fields that it lacks are removed.
	w.pass(5 * time.Second)
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

// Of a namespace that the controller does not serve nothing is read: not the job, and no token is proven.
func TestReports_OfOtherNamespacesAreRefused(t *testing.T) {
	w := newFixture(t, family("train")...)
	w.of(class.Class{Namespaces: []string{"elsewhere"}})
	code, _ := w.post("train", token("train-pod", "train"), progress(40))
	if code != http.StatusForbidden || w.reviews.Load() != 0 || w.status("train") != nil {
		t.Errorf("answer %d after %d reviews", code, w.reviews.Load())
	}
}

// Another writer, such as an earlier controller or a user, may have written the status that a report replaces.
func TestHandler_ReportWinsOverOtherWriters(t *testing.T) {
	w := newFixture(t, family("train")...)
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
	w.pass(statusserver.Spacing)
	if status := w.status("train"); code != http.StatusOK || *status.ProgressPercentage != 40 {
		t.Errorf("answer %d %s, status %+v", code, body, status)
	}
}

func TestHandler_AnswersByRequest(t *testing.T) {
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
		"a long name":        {path: strings.Replace(path, "/train/", "/"+strings.Repeat("a", 254)+"/", 1), code: 404, message: "Not found"},
		"a long namespace":   {path: strings.Replace(path, "team-a", strings.Repeat("a", 64), 1), code: 404, message: "Not found"},
		"a name in capitals": {path: strings.Replace(path, "/train/", "/Train/", 1), code: 404, message: "Not found"},
		"a dotted namespace": {path: strings.Replace(path, "team-a", "team.a", 1), code: 404, message: "Not found"},
		"a hidden slash":     {path: strings.Replace(path, "/train/", "/a%2Ftrain/", 1), code: 404, message: "Not found"},
		"no token":           {token: "none", body: `{`, code: 403, message: "Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, family("train")...)
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

// A report that the API server would refuse is refused before it is accepted, with the field.
func TestReport_OutOfBounds(t *testing.T) {
	const now = `"lastUpdatedTime":"2026-11-22T10:00:00Z"`
	for body, says := range map[string]string{
		`{"trainerStatus":{"progressPercentage":101,` + now + `}}`:       "status.trainerStatus.progressPercentage: Invalid value: 101",
		`{"trainerStatus":{"estimatedRemainingSeconds":-1,` + now + `}}`: "status.trainerStatus.estimatedRemainingSeconds: Invalid value: -1",
		`{"trainerStatus":{}}`: "status.trainerStatus.lastUpdatedTime: Required",
		`{"trainerStatus":{"metrics":[{"name":"loss"}],` + now + `}}`:                     "status.trainerStatus.metrics[0].value: Required",
		`{"trainerStatus":{"metrics":[{"name":"","value":"1"}],"progressPercentage":-1}}`: "metrics[0].name",
	} {
		w := newFixture(t, family("train")...)
		code, answer := w.post("train", token("train-pod", "train"), body)
		if code != http.StatusUnprocessableEntity || !strings.Contains(answer, says) ||
			!strings.Contains(answer, `\"train\"`) {
			t.Errorf("%s: answer %d %s, want 422 with %s", body, code, answer, says)
		}
		if w.status("train") != nil {
			t.Errorf("%s: something was written", body)
		}
	}
}

// A report is accepted before it is written. The error of the write decides whether it is retried.
func TestReport_WriteMeets(t *testing.T) {
	resource := schema.GroupResource{Group: trainerv1alpha1.Group, Resource: "trainjobs"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: trainerv1alpha1.Group, Kind: "TrainJob"}, "train", nil)
	for name, test := range map[string]struct {
		err error
		// tries are the writes within a minute; if there are several, the last one succeeds.
		tries  int
		result string
	}{
		"a job that is gone": {err: apierrors.NewNotFound(resource, "train"), tries: 1, result: "gone"},
		"a refusal":          {err: invalid, tries: 1, result: "refused"},
		"a conflict":         {err: apierrors.NewConflict(resource, "train", nil), tries: 2, result: "conflict"},
		"a fault":            {err: errors.New("connection to 10.0.0.1 refused"), tries: 2, result: "failed"},
		"a fault that stays": {err: errors.New("connection to 10.0.0.1 refused"), tries: 6, result: "failed"},
		"a panic":            {err: nil, tries: 1, result: "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, family("train")...)
			tries := 0
			w.writing = func(context.Context, string) error {
				switch tries++; {
				case test.err == nil:
					panic("nobody thought of it")
				case tries < test.tries || test.tries == 1:
					return test.err
				default:
					return nil
				}
			}
			if code, body := w.post("train", token("train-pod", "train"), progress(40)); code != http.StatusOK {
				t.Fatalf("answer %d %s", code, body)
			}
			w.pass(0)
			if tries != 1 {
				t.Errorf("the first report was written %d times at once", tries)
			}
			for range 60 {
				w.pass(time.Second)
			}
			if tries != test.tries || (w.status("train") != nil) != (test.tries > 1) {
				t.Errorf("%d tries, status %v; want %d", tries, w.status("train"), test.tries)
			}
			name := fmt.Sprintf("lockstep_status_server_writes_total{result=%q}", test.result)
			if got := w.metric(name); got != float64(max(1, test.tries-1)) {
				t.Errorf("%s is %v", name, got)
			}
			// In each case, the next report is written.
			w.writing = nil
			w.post("train", token("train-pod", "train"), progress(100))
			w.pass(statusserver.Spacing)
			if status := w.status("train"); status == nil || *status.ProgressPercentage != 100 {
				t.Errorf("after the next report: %+v", status)
			}
		})
	}
}

func TestHandler_PanicIsOneAnswer(t *testing.T) {
	w := newFixture(t, family("train")...)
	w.review = func(*authenticationv1.TokenReviewStatus) { panic("nobody thought of it") }
	if code, body := w.post("train", token("train-pod", "train"), progress(1)); code != 500 ||
		!strings.Contains(body, "Internal error") || strings.Contains(body, "thought") {
		t.Errorf("answer %d %s", code, body)
	}
	w.review = nil
	if code, _ := w.post("train", token("train-pod", "train"), progress(1)); code != 200 {
		t.Errorf("the next report: %d", code)
	}
	want := `
# HELP lockstep_status_server_requests_total Requests to the status server, by HTTP code.
# TYPE lockstep_status_server_requests_total counter
lockstep_status_server_requests_total{code="200"} 1
lockstep_status_server_requests_total{code="500"} 1
`
	if err := testutil.GatherAndCompare(
		w.registry,
		strings.NewReader(want),
		"lockstep_status_server_requests_total",
	); err != nil {
		t.Error(err)
	}
}
