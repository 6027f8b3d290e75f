package integration_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scraper asks for the controller's metrics with a token, or with none, as Prometheus does: it verifies the
// certificate.
func scraper(t *testing.T) func(token string) (status int, text string) {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(shared.Admin.CAData) {
		t.Fatal("the cluster has no authority")
	}
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
	t.Cleanup(client.CloseIdleConnections)
	return func(token string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, shared.ControllerMetrics(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
}

// tokenFor asks for a token of an account of the default namespace; without an audience, for the API server.
func tokenFor(t *testing.T, account string, audiences ...string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	token, err := shared.Client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).
		CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// orphan is the token of an account that was deleted since. The API server reads accounts from a cache, and believes a
// token for another ten seconds after it did: it has to refuse this one before others are asked to.
func orphan(t *testing.T) string {
	t.Helper()
	accounts := shared.Client.CoreV1().ServiceAccounts(corev1.NamespaceDefault)
	gone := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}
	if _, err := accounts.Create(t.Context(), gone, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := tokenFor(t, gone.Name)
	if err := accounts.Delete(t.Context(), gone.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server to refuse the token of a deleted account", func() bool {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		review, err := shared.Client.AuthenticationV1().
			TokenReviews().
			Create(t.Context(), review, metav1.CreateOptions{})
		return err == nil && !review.Status.Authenticated
	})
	return token
}

// account makes a ServiceAccount and returns a token of its own.
func account(t *testing.T, name string) string {
	t.Helper()
	accounts := shared.Client.CoreV1().ServiceAccounts(corev1.NamespaceDefault)
	_, err := accounts.Create(
		t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := accounts.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return tokenFor(t, name)
}

// mayScrape binds the shipped role of scrapers to an account.
func mayScrape(t *testing.T, name string) {
	t.Helper()
	bindings := shared.Client.RbacV1().ClusterRoleBindings()
	_, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lockstep-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: corev1.NamespaceDefault, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bindings.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// Metrics reveal which team trains which jobs: they are only for authenticated users with permission to read them.
func TestMetrics_NeedPermissionToRead(t *testing.T) {
	play(t, 30*time.Second, gang("measured", 2, "1s"))
	scrape := scraper(t)
	if status, _ := scrape(""); status != http.StatusUnauthorized {
		t.Errorf("without a token: status %d, want 401", status)
	}
	stranger := account(t, "stranger")
	for name, token := range map[string]string{
		"made up":                    "made-up",
		"shaped like a token":        "e30.e30.e30",
		"with another signature":     stranger[:len(stranger)-8] + "AAAAAAAA",
		"without a signature":        stranger[:strings.LastIndexByte(stranger, '.')+1],
		"for another audience":       tokenFor(t, "stranger", "trainer.kubeflow.org/v1alpha1"),
		"of an account that is gone": orphan(t),
	} {
		if status, text := scrape(token); status != http.StatusUnauthorized || strings.Contains(text, "kubeflow") {
			t.Errorf("with a token %s: status %d, want 401 without metrics", name, status)
		}
	}
	if status, _ := scrape(stranger); status != http.StatusForbidden {
		t.Errorf("an account without rights: status %d, want 403", status)
	}
	token := account(t, "scraper")
	mayScrape(t, "scraper")
	var text string
	eventually(t, "status 200", func() bool {
		var status int
		status, text = scrape(token)
		return status == http.StatusOK
	})

	where := `namespace="` + namespaceOf(t) + `",runtime="torch-distributed"`
	for _, want := range []string{
		`kubeflow_trainer_trainjobs_created_total{framework="torch",` + where + "} 1\n",
		`kubeflow_trainer_trainjobs_completed_total{framework="torch",` + where + "} 1\n",
		`kubeflow_trainer_trainjobs{` + where + `,state="complete"} 1` + "\n",
		`kubeflow_trainer_trainjobs_active{` + where + "} 0\n",
		`kubeflow_trainer_trainjob_jobset_wait_seconds_count{framework="torch"}`,
		`kubeflow_trainer_trainjob_duration_seconds_count{framework="torch",result="complete"}`,
		`kubeflow_trainer_trainjob_run_duration_seconds_count{framework="torch",result="complete"}`,
		`kubeflow_trainer_reconcile_duration_seconds_count{controller="trainjob",result="ok"}`,
		`kubeflow_trainer_reconcile_phase_duration_seconds_count{phase="apply"}`,
		`lockstep_controller_reconciles_total{framework="torch",result="ok"}`,
		`lockstep_cluster_mode{mode="` + string(offered()) + `"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
}
