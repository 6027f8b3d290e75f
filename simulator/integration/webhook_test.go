package integration_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/controller/certificate"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// The API server counts the calls of each webhook: whatever a webhook answers, that it was asked is seen there.
func TestWebhooks_AreCalled(t *testing.T) {
	const runtime = `
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: none}]}}}
`
	for _, document := range []string{
		strings.ReplaceAll(gang("asked", 1, "1s"), "NAMESPACE", corev1.NamespaceDefault),
		strings.ReplaceAll(strings.ReplaceAll(gang("asked", 1, "1s"), "NAMESPACE", corev1.NamespaceDefault),
			"trainer.kubeflow.org/v1alpha1", "trainer.kubeflow.org/v2alpha1"),
		"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\n" +
			"metadata: {name: asked, namespace: default}\nspec:" + runtime,
		"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata: {name: asked}\nspec:" + runtime,
	} {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		resource := object.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(object.GetKind()) + "s")
		before := calls(t)
		if _, err := shared.Dynamic.Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), &object,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("%s %s: %v", object.GetAPIVersion(), object.GetKind(), err)
			continue
		}
		after, singular := calls(t), strings.ToLower(object.GetKind())
		for _, webhook := range []string{"defaulter.", "validator."} {
			name := webhook + singular + ".trainer.kubeflow.org"
			if webhook == "defaulter." && singular != "trainjob" {
				continue
			}
			if after[name] <= before[name] {
				t.Errorf("%s %s was created without asking %s", object.GetAPIVersion(), object.GetKind(), name)
			}
		}
	}
}

// calls returns the number of answered calls of webhooks on creation, by the webhook's name.
func calls(t *testing.T) map[string]int {
	t.Helper()
	text, err := shared.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, `apiserver_admission_webhook_request_total{code="200",`) &&
			strings.Contains(line, `operation="CREATE"`) {
			_, name, _ := strings.Cut(line, `name="`)
			name, _, _ = strings.Cut(name, `"`)
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, "}")+1:]), 64)
			if err != nil {
				t.Fatal(err)
			}
			counts[name] += int(value)
		}
	}
	return counts
}

// The shipped roles let the controller maintain its certificate by itself, and no more.
func TestCertificate_ControllerMayMaintainIt(t *testing.T) {
	options := config.Default()
	const group = "admissionregistration.k8s.io"
	mutating, validating := "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
	for _, test := range []struct {
		verb, group, resource, name string
		allowed                     bool
	}{
		{"create", "", "secrets", "", true},
		{"get", "", "secrets", options.WebhookSecret, true},
		{"update", "", "secrets", options.WebhookSecret, true},
		{"deletecollection", "", "secrets", "", false},
		{"update", "", "secrets", "another", false},
		{"get", group, mutating, controller.MutatingConfiguration, true},
		{"patch", group, mutating, controller.MutatingConfiguration, true},
		{"get", group, validating, controller.ValidatingConfiguration, true},
		{"patch", group, validating, controller.ValidatingConfiguration, true},
		{"update", group, validating, controller.ValidatingConfiguration, false},
		{"delete", group, validating, controller.ValidatingConfiguration, false},
		{"patch", group, mutating, "kueue-mutating-webhook-configuration", false},
		{"patch", group, validating, "kueue-validating-webhook-configuration", false},
		{"create", group, mutating, "", false},
		{"list", group, validating, "", false},
	} {
		attributes := &authorizationv1.ResourceAttributes{
			Verb: test.verb, Group: test.group, Resource: test.resource, Name: test.name,
		}
		if test.group == "" {
			attributes.Namespace = options.Namespace
		}
		review, err := shared.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   "system:serviceaccount:lockstep-system:lockstep-controller",
				Groups: []string{"system:serviceaccounts", "system:authenticated"}, ResourceAttributes: attributes,
			}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != test.allowed {
			t.Errorf(
				"%s %s %q: allowed %t, want %t",
				test.verb,
				test.resource,
				test.name,
				review.Status.Allowed,
				test.allowed,
			)
		}
	}
}

// The whole life of a certificate against a real API server: it is made, trusted, repaired and renewed, and a client
// that read the caBundle at any time trusts the certificate after the next renewal.
func TestCertificate_RepairedAndRenewed(t *testing.T) {
	namespace := namespaceOf(t)
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	clock := clocktesting.NewFakeClock(time.Now())
	keeper, address := serveDenials(t, namespace, clock)
	// ConfigMaps of this namespace, and nothing else in the cluster, ask the scratch webhook.
	scratch := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{
				Name: "denier.lockstep.dev",
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					URL: new("https://" + address + "/deny"),
				},
				AdmissionReviewVersions: []string{"v1"},
				SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
				NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{corev1.LabelMetadataName: namespace},
				},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
					},
				}},
			},
		},
	}
	create(t, scratch)
	t.Cleanup(func() {
		_ = shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().
			Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{})
	})

	checkKeeper(t, keeper)
	secret, err := shared.Client.CoreV1().Secrets(namespace).Get(t.Context(), keeper.Secret.Name, metav1.GetOptions{})
	if err != nil || len(secret.Data) != 4 {
		t.Fatalf("the Secret has %d keys, %v", len(secret.Data), err)
	}
	waitForDenial(t, namespace)

	// A user applies the configuration again as before, without a caBundle.
	first := caBundle(t, namespace)
	resetBundle(t, namespace)
	checkKeeper(t, keeper)
	if got := caBundle(t, namespace); got != first {
		t.Errorf("after the reset the caBundle is %q, want %q", got, first)
	}

	// Ten renewals of the serving certificate, and one of the authority.
	trusted, served := first, dial(t, clock, address, first)
	renewals := 0
	for range 30 {
		clock.Step(90 * 24 * time.Hour)
		checkKeeper(t, keeper)
		if now := dial(t, clock, address, trusted); now != served {
			served = now
			renewals++
		}
		trusted = caBundle(t, namespace)
	}
	if renewals != 10 {
		t.Errorf("the certificate was renewed %d times in 2,700 days, want 10", renewals)
	}
	if n := strings.Count(trusted, "BEGIN CERTIFICATE"); n != 2 || !strings.HasSuffix(trusted, first) {
		t.Errorf("after the renewal of the authority the caBundle holds %d, want the new one and the old one", n)
	}
}

// serveDenials serves a webhook that denies everything, with the certificate of a keeper of its own.
func serveDenials(t *testing.T, namespace string, clock *clocktesting.FakeClock) (*certificate.Keeper, string) {
	t.Helper()
	direct, err := client.New(shared.Admin, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	service := types.NamespacedName{Namespace: namespace, Name: "scratch"}
	keeper := &certificate.Keeper{
		Client: direct, Clock: clock, Service: service, Hosts: certificate.Hosts(service, "127.0.0.1"),
		Secret: types.NamespacedName{Namespace: namespace, Name: "certificate"}, Validating: []string{namespace},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		TLSConfig: &tls.Config{GetCertificate: keeper.GetCertificate, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review admissionv1.AdmissionReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
				return
			}
			review.Response = &admissionv1.AdmissionResponse{
				UID:    review.Request.UID,
				Result: &metav1.Status{Message: "by the scratch webhook", Code: http.StatusForbidden},
			}
			if err := json.NewEncoder(w).Encode(review); err != nil {
				t.Error(err)
			}
		}),
	}
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { _ = server.Close() })
	return keeper, listener.Addr().String()
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	direct, err := client.New(shared.Admin, client.Options{Scheme: clientgoscheme.Scheme})
	if err == nil {
		err = direct.Create(t.Context(), object)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func checkKeeper(t *testing.T, keeper *certificate.Keeper) {
	t.Helper()
	if _, err := keeper.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// waitForDenial waits until the API server has seen the configuration and asks the scratch webhook.
func waitForDenial(t *testing.T, namespace string) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, testcluster.Patience(time.Minute), true,
		func(ctx context.Context) (bool, error) {
			_, err := shared.Client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "asked-"},
			}, metav1.CreateOptions{})
			if ctx.Err() == nil {
				last = err
			}
			return apierrors.IsForbidden(last) && strings.Contains(last.Error(), "by the scratch webhook"), nil
		})
	if err != nil {
		t.Fatalf("the API server does not trust the webhook: %v", last)
	}
}

func caBundle(t *testing.T, name string) string {
	t.Helper()
	configuration, err := shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(configuration.Webhooks[0].ClientConfig.CABundle)
}

// resetBundle removes the caBundle.
func resetBundle(t *testing.T, name string) {
	t.Helper()
	patch := []byte(`[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)
	if _, err := shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Patch(t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if left := caBundle(t, name); left != "" {
		t.Fatalf("the caBundle was not removed: %s", left)
	}
}

// dial connects as a client that trusts a bundle, and returns the certificate that it was shown.
func dial(t *testing.T, clock *clocktesting.FakeClock, address, bundle string) string {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(bundle))
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, Time: clock.Now, MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("on %s: %v", clock.Now().Format(time.DateOnly), err)
	}
	defer func() { _ = connection.Close() }()
	state := connection.(*tls.Conn).ConnectionState()
	return string(state.PeerCertificates[0].Raw)
}
