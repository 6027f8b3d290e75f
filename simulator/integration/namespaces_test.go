package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

func admissionConfigurations() map[schema.GroupVersionResource]string {
	group := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	return map[schema.GroupVersionResource]string{
		group.WithResource("mutatingwebhookconfigurations"):   controller.MutatingConfiguration,
		group.WithResource("validatingwebhookconfigurations"): controller.ValidatingConfiguration,
	}
}

// A controller with rights in two namespaces, and without those in a third one that it should have, runs the jobs
// there. It leaves a job in a fourth one alone, cannot read there, and its webhooks are not called for it. It makes
// gangs only of jobs that ask for it.
func TestNamespaces_OthersAreLeftAlone(t *testing.T) {
	paused(t)
	restored(t)
	narrow := render.Release{Name: "lockstep", Namespace: "narrow-system"}.With("manager.serviceAccount", "narrow").
		With("namespaces", []any{"narrow-lost", "narrow-a", "narrow-b"})
	for _, name := range []string{narrow.Namespace, "narrow-c", "narrow-lost", "narrow-a", "narrow-b"} {
		makeNamespace(t, name)
	}
	applyRendered(t, narrow, func(*unstructured.Unstructured) bool { return true })
	// Its administrator may do that, and must not prevent others' jobs from starting.
	bindings := shared.Client.RbacV1().RoleBindings("narrow-lost")
	if err := bindings.Delete(t.Context(), "lockstep-controller", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	registerRendered(t, narrow, "https://127.0.0.1:"+port)
	log := runNarrow(t, narrow, port)

	job := func(namespace, runtime string) string {
		return strings.ReplaceAll(
			strings.ReplaceAll(gang("train", 2, "1s"), "NAMESPACE", namespace),
			"torch-distributed",
			runtime,
		)
	}
	if got := tryCreate(t, job("narrow-a", "no-such-runtime")); got.code != http.StatusForbidden {
		t.Errorf("in its own namespace a job without a runtime is answered %d %s", got.code, got.text)
	}
	kept(t, trainJobs, job("narrow-c", "no-such-runtime"))
	const wish = "    lockstep.dev/required-topology: nvidia.com/gpu.clique\n"
	kept(
		t,
		trainJobs,
		strings.Replace(job("narrow-a", "torch-distributed"), wish, wish+"    lockstep.dev/gang: \"on\"\n", 1),
	)
	kept(t, trainJobs, strings.Replace(job("narrow-b", "torch-distributed"), wish, "", 1))
	for namespace, gangs := range map[string]int{"narrow-a": 1, "narrow-b": 0} {
		testcluster.Within(t, 30*time.Second, "the end of the job in "+namespace, func() bool {
			stored, err := shared.Dynamic.Resource(trainJobs).
				Namespace(namespace).
				Get(t.Context(), "train", metav1.GetOptions{})
			return err == nil && strings.Contains(fmt.Sprint(stored.Object["status"]), "type:Complete")
		})
		groups, err := shared.Client.SchedulingV1beta1().PodGroups(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(groups.Items) != gangs {
			t.Errorf("%s has %d PodGroups (%v), want %d", namespace, len(groups.Items), err, gangs)
		}
	}
	left, err := shared.Dynamic.Resource(trainJobs).Namespace("narrow-c").Get(t.Context(), "train", metav1.GetOptions{})
	if err != nil || left.Object["status"] != nil {
		t.Errorf("the job in narrow-c has status %v (%v)", left.Object["status"], err)
	}
	itself, err := gangapi.Client(as(narrow.Account()), offered().API())
	if err != nil {
		t.Fatal(err)
	}
	_, err = itself.CoreV1().ConfigMaps("narrow-c").List(t.Context(), metav1.ListOptions{})
	wantForbidden(t, err, "cannot list resource")
	if _, err = itself.CoreV1().ConfigMaps("narrow-b").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("it cannot read in narrow-b: %v", err)
	}
	if text := log(); !strings.Contains(
		text,
		`"Namespace is left alone: the controller lacks a right there" namespace="narrow-lost"`,
	) {
		t.Errorf("the controller does not say that it left a namespace alone:\n%s", text)
	}
	if text := log(); strings.Contains(text, "forbidden") || strings.Contains(text, "unknown namespace") {
		t.Errorf("the controller complains:\n%s", text)
	}
}

// registerRendered registers the webhooks of a release at a URL, and puts those of the cluster back when the test ends.
func registerRendered(t *testing.T, release render.Release, base string) {
	t.Helper()
	for resource, name := range admissionConfigurations() {
		configurations := shared.Dynamic.Resource(resource)
		before, err := configurations.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { putWebhooks(t, resource, name, before.Object["webhooks"]) })
	}
	rendered, err := render.Chart(release)
	if err != nil {
		t.Fatal(err)
	}
	for resource, name := range admissionConfigurations() {
		for _, object := range rendered.Objects {
			if object.GetName() != name {
				continue
			}
			webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
			for _, entry := range webhooks {
				webhook := entry.(map[string]any)
				path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
				webhook["clientConfig"] = map[string]any{"url": base + path, "caBundle": shared.Admin.CAData}
			}
			putWebhooks(t, resource, name, webhooks)
		}
	}
}

// putWebhooks replaces the webhooks of a configuration.
func putWebhooks(t *testing.T, resource schema.GroupVersionResource, name string, webhooks any) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	configurations := shared.Dynamic.Resource(resource)
	now, err := configurations.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		now.Object["webhooks"] = webhooks
		_, err = configurations.Update(ctx, now, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Error(err)
	}
}

// runNarrow runs the controller of a release until the test ends, with a token of its account and as its Deployment
// would: one that ends, since it could not renew its leader's lease in time, starts again. It returns when the controller
// is ready, with its log so far.
func runNarrow(t *testing.T, release render.Release, port string) func() string {
	t.Helper()
	binaries, err := cluster.Build(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	health, logs := freePort(t), filepath.Join(t.TempDir(), "log")
	file, err := os.Create(logs)
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{
		"--kubeconfig=" + kubeconfigFor(t, release),
		"--namespace=" + release.Namespace,
		"--namespaces=narrow-lost,narrow-a,narrow-b",
		"--leader-elect",
		"--metrics-bind-address=0",
		"--health-probe-bind-address=127.0.0.1:" + health,
		"--gang-default=off",
		"--webhook-host=127.0.0.1",
		"--webhook-port=" + port,
		"--cert-management=external",
		"--webhook-cert-dir=" + filepath.Join(shared.Dir(), "pki"),
		"--feature-gates=TrainJobStatus=true",
		"--status-server-port=" + freePort(t),
	}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // whose end would kill the process
		for ctx.Err() == nil {
			process := exec.CommandContext(ctx, binaries.Controller, arguments...)
			process.Stdout, process.Stderr = file, file
			process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
			_ = process.Run() // how it ends is in its log
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	read := func() string {
		text, _ := os.ReadFile(logs)
		return string(text)
	}
	t.Cleanup(func() {
		end()
		<-ended
		_ = file.Close()
		if t.Failed() {
			t.Log(read())
		}
	})
	testcluster.Within(t, 40*time.Second, "the controller's readiness", func() bool {
		response, err := http.Get("http://127.0.0.1:" + health + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return read
}

// kubeconfigFor is a kubeconfig with a token of the account of the release's controller.
func kubeconfigFor(t *testing.T, release render.Release) string {
	t.Helper()
	account := release.Account()[strings.LastIndex(release.Account(), ":")+1:]
	review, err := shared.Client.CoreV1().ServiceAccounts(release.Namespace).
		CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfigOf(t, shared.Admin, review.Status.Token)
}

// kubeconfigOf writes a kubeconfig for the same API server with another token.
func kubeconfigOf(t *testing.T, access *rest.Config, token string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: access.Host, CertificateAuthorityData: access.CAData}
	config.AuthInfos["it"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	config.CurrentContext = "it"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// With namespaces, the rules about cluster-scoped resources stay in the ClusterRole, and all others move into the
// Roles; the cluster's discovery has the scopes.
func TestNamespaces_TheChartKnowsScopes(t *testing.T) {
	lists, err := shared.Client.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	namespaced := map[string]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			namespaced[version.Group+"/"+resource.Name] = resource.Namespaced
		}
	}
	rendered, err := render.Chart(render.Default().With("namespaces", []any{"team-a"}))
	if err != nil {
		t.Fatal(err)
	}
	roles := rendered.Find("ClusterRole", "lockstep-controller")
	roles = append(roles, rendered.Find("Role", "lockstep-controller")...)
	for _, object := range roles {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					base, _, _ := strings.Cut(resource, "/")
					if is, served := namespaced[group+"/"+base]; served && is != (role.Kind == "Role") {
						t.Errorf("%s/%s has a namespace: %t, and is in the %s", group, base, is, role.Kind)
					}
				}
			}
		}
	}
	if len(roles) != 2 {
		t.Errorf("%d roles, want the ClusterRole and a Role", len(roles))
	}
}
