package sdk_test

import (
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// belongings are a namespace with a user who may edit in it, and the objects of the namespace's administrator: an
// account for pods, and a runtime whose pods have an init container and a sidecar.
const belongings = `apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: user, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: user, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: user, namespace: NAMESPACE}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: trainer, namespace: NAMESPACE}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: team, namespace: NAMESPACE, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                initContainers: [{name: fetch, image: example.com/fetch:1}]
                containers: [{name: node, image: example.com/torch:1}, {name: sidecar, image: example.com/sidecar:1}]
`

// newUser makes a namespace, and returns the kubeconfig of a user with the role edit in it and no other.
func newUser(t *testing.T, namespace string) string {
	t.Helper()
	ctx := t.Context()
	for object := range strings.SplitSeq(strings.ReplaceAll(belongings, "NAMESPACE", namespace), "---\n") {
		if err := shared.ApplyYAML(ctx, []byte(object)); err != nil {
			t.Fatal(err)
		}
	}
	cacheFor(t, namespace)
	token, err := shared.Client.CoreV1().ServiceAccounts(namespace).
		CreateToken(ctx, "user", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["lockstep"] = &clientcmdapi.Cluster{
		Server: shared.Admin.Host, CertificateAuthorityData: shared.Admin.CAData,
	}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["user"] = &clientcmdapi.Context{Cluster: "lockstep", AuthInfo: "user", Namespace: namespace}
	config.CurrentContext = "user"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// cacheFor applies the chart's objects for a namespace that uses the dataset cache.
func cacheFor(t *testing.T, namespace string) {
	t.Helper()
	rendered, err := render.Chart(render.Default().With("dataCache.namespaces", []any{namespace}))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range rendered.Objects {
		if object.GetNamespace() != namespace {
			continue
		}
		if err := shared.Apply(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}
