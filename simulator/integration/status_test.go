package integration_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// reporting is a TrainJob whose pods run long enough to report.
const reporting = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: NAME, namespace: NAMESPACE, annotations: {simulator.lockstep.dev/run-time: 300s}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}
`

// Pods report as a kubelet lets them: with a token for their job, to the address in their environment, trusting the
// certificate in the ConfigMap. Their reports stay while the controller writes the status too, and no other client can
// report.
func TestTrainerStatus_PodsReport(t *testing.T) {
	namespace := namespaceOf(t)
	submit(t, strings.ReplaceAll(reporting, "NAME,", "train,")+"---\n"+strings.ReplaceAll(reporting, "NAME,", "other,"))
	pods, others := newRunners(t, namespace, "train", 2, nil), newRunners(t, namespace, "other", 2, nil)
	audience := plan.StatusAudience(types.NamespacedName{Namespace: namespace, Name: "train"})
	reporter := newReporter(t, namespace, "train", pods[0])
	first, unused := token(t, audience, &pods[0]), token(t, audience, &pods[1])

	const report = `{"trainerStatus":{"progressPercentage":40,"estimatedRemainingSeconds":60,` +
		`"metrics":[{"name":"loss","value":"0.1"}],"lastUpdatedTime":"2026-11-22T10:00:00Z"}}`
	if code, answer := reporter.post(t, first, report); code != http.StatusOK || answer != report {
		t.Fatalf("answer %d %s, want the echo", code, answer)
	}
	want := map[string]any{
		"progressPercentage": int64(
			40,
		),
		"estimatedRemainingSeconds": int64(60),
		"lastUpdatedTime":           "2026-11-22T10:00:00Z",
		"metrics":                   []any{map[string]any{"name": "loss", "value": "0.1"}},
	}
	// It is the job's first report, which is written at once.
	testcluster.Within(t, 6*time.Second, "the report", func() bool { // and later ones after 30 s
		return cmp.Equal(want, trainerStatus(t, namespace, "train"))
	})
	reporter.checkRefusals(t, first)

	bare := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bare"},
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "bare", Image: "none"}},
			NodeSelector: map[string]string{"nowhere": "at-all"},
		},
	}
	create(t, bare)
	if bare, _ = shared.Client.CoreV1().Pods(namespace).Get(t.Context(), "bare", metav1.GetOptions{}); bare == nil {
		t.Fatal("the pod was not created")
	}
	t.Cleanup(func() {
		_ = shared.Client.CoreV1().
			Pods(namespace).
			Delete(context.WithoutCancel(t.Context()), "bare", metav1.DeleteOptions{})
	})
	for name, token := range map[string]string{
		"no token":                         "none",
		"a token that is not bound":        token(t, audience, nil),
		"a token for the API server":       token(t, "https://kubernetes.default.svc", &pods[0]),
		"the other job's own token":        token(t, strings.Replace(audience, "/train/", "/other/", 1), &others[0]),
		"a token of a pod of another job":  token(t, audience, &others[0]),
		"a token of a pod made by a hand":  token(t, audience, bare),
		"a token with another signature":   first[:len(first)-8] + "AAAAAAAA",
		"the administrator's credentials":  shared.Admin.BearerToken,
		"a token of another job's cluster": "e30.e30.e30",
	} {
		if code, answer := reporter.post(
			t,
			token,
			report,
		); code != http.StatusForbidden ||
			strings.Contains(answer, "pod") {
			t.Errorf("%s: answer %d %s, want 403 without a reason", name, code, answer)
		}
	}

	// The controller writes the status and the pods are deleted; the report stays, and the pods' tokens are worth
	// nothing.
	suspend(t, namespace, "train")
	eventually(t, "the condition Suspended, and the end of the pods", func() bool {
		return slices.Contains(conditions(t, namespace, "train"), "Suspended") &&
			len(podsOf(t.Context(), t, namespace, "train")) == 0
	})
	if diff := cmp.Diff(want, trainerStatus(t, namespace, "train")); diff != "" {
		t.Errorf("trainerStatus after the suspension (-want +got):\n%s", diff)
	}
	if code, answer := reporter.post(t, unused, report); code != http.StatusForbidden {
		t.Errorf("the token of a deleted pod: %d %s, want 403", code, answer)
	}
}

// checkRefusals posts reports that the CRD does not admit, with a valid token.
func (r reporter) checkRefusals(t *testing.T, token string) {
	t.Helper()
	for body, says := range map[string]string{
		`{"trainerStatus":{"progressPercentage":101,"lastUpdatedTime":"2026-11-22T10:00:00Z"}}`:               "progressPercentage",
		`{"trainerStatus":{"progressPercentage":1}}`:                                                          "lastUpdatedTime",
		`{"trainerStatus":{"lastUpdatedTime":"2026-11-22T10:00:00Z","metrics":[{"name":"loss","value":""}]}}`: "metrics[0].value",
		`{"trainerStatus":`: "Invalid payload",
	} {
		if code, answer := r.post(
			t,
			token,
			body,
		); code != http.StatusUnprocessableEntity ||
			!strings.Contains(answer, says) {
			t.Errorf("%s: answer %d %s, want 422 with %s", body, code, answer, says)
		}
	}
	if code, answer := r.post(t, token, `{}`); code != http.StatusOK || answer != `{}` {
		t.Errorf("nothing: answer %d %s", code, answer)
	}
}

// reporter posts to the address that a pod would use, and trusts the same certificate.
type reporter struct {
	url    string
	client *http.Client
}

func newReporter(t *testing.T, namespace, job string, pod corev1.Pod) reporter {
	t.Helper()
	config, err := shared.Client.CoreV1().ConfigMaps(namespace).
		Get(t.Context(), plan.StatusConfigName(job), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(config.Data[plan.StatusAuthorityKey])) {
		t.Fatalf("ConfigMap %s has no authority: %v", config.Name, config.Data)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	r := reporter{client: &http.Client{Transport: transport, Timeout: 15 * time.Second}}
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == plan.EnvStatusURL {
			r.url = variable.Value
		}
	}
	return r
}

func (r reporter) post(t *testing.T, token, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// token asks for a token as a kubelet does for a pod's volume; without a pod it is bound to nothing.
func token(t *testing.T, audience string, pod *corev1.Pod) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: new(int64(3600))},
	}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}
	}
	answer, err := shared.Client.CoreV1().ServiceAccounts(namespaceOf(t)).
		CreateToken(t.Context(), "default", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

func trainerStatus(t *testing.T, namespace, job string) map[string]any {
	t.Helper()
	status, _, _ := unstructured.NestedMap(trainJob(t, namespace, job).Object, "status", "trainerStatus")
	return status
}

// conditions are the types of the job's conditions that are true.
func conditions(t *testing.T, namespace, job string) []string {
	t.Helper()
	list, _, _ := unstructured.NestedSlice(trainJob(t, namespace, job).Object, "status", "conditions")
	var found []string
	for _, item := range list {
		if condition, ok := item.(map[string]any); ok && condition["status"] == "True" {
			found = append(found, condition["type"].(string))
		}
	}
	return found
}

func trainJob(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	var job *unstructured.Unstructured
	testcluster.Ask(t, func() (err error) {
		job, err = shared.Dynamic.Resource(trainJobs).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		return err
	})
	return job
}

func suspend(t *testing.T, namespace, job string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"suspend": true}})
	if err == nil {
		_, err = shared.Dynamic.Resource(trainJobs).Namespace(namespace).
			Patch(t.Context(), job, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
