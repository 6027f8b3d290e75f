package cluster_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

const kueueManifests = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workloads.kueue.x-k8s.io}
spec: {group: kueue.x-k8s.io}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: topologies.kueue.x-k8s.io}
spec: {group: kueue.x-k8s.io}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager-role}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [get]}
- apiGroups: [admissionregistration.k8s.io]
  resourceNames: [validating-webhook-configuration]
  resources: [validatingwebhookconfigurations]
  verbs: [update]
- apiGroups: [apiextensions.k8s.io]
  resourceNames: [workloads.kueue.x-k8s.io]
  resources: [customresourcedefinitions]
  verbs: [update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: manager-secrets-rolebinding, namespace: system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: manager-secrets-role}
subjects: [{kind: ServiceAccount, name: controller-manager, namespace: system}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mutating-webhook-configuration}
webhooks:
- name: mpod.kb.io
  clientConfig: {service: {name: webhook-service, namespace: system, path: /mutate--v1-pod}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
- name: mtrainjob.kb.io
  clientConfig: {service: {name: webhook-service, namespace: system, path: /mutate-trainjob}}
  rules: [{apiGroups: [trainer.kubeflow.org], apiVersions: [v1alpha1], operations: [CREATE], resources: [trainjobs]}]
`

// Kueue asks for its objects by the names of its own deployment: it would wait for ever for others.
func TestAsKueue_RetainsKueuesNames(t *testing.T) {
	deployed, err := cluster.AsKueue([]byte(kueueManifests), "https://127.0.0.1:9443", []byte("authority"))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]map[string]any{}
	for _, object := range deployed {
		at[object.GetNamespace()+"/"+object.GetName()] = object.Object
	}
	text := func(object map[string]any, path ...string) string {
		value, _, _ := unstructured.NestedString(object, path...)
		return value
	}
	converter := []string{"spec", "conversion", "webhook", "clientConfig", "url"}
	if url := text(at["/workloads.kueue.x-k8s.io"], converter...); url != "https://127.0.0.1:9443/convert" {
		t.Errorf("Workloads are converted at %q", url)
	}
	if _, set, _ := unstructured.NestedMap(at["/topologies.kueue.x-k8s.io"], "spec", "conversion"); set {
		t.Error("Topologies, which Kueue does not convert, are converted")
	}
	var named []string
	rules, _, _ := unstructured.NestedSlice(at["/kueue-manager-role"], "rules")
	for _, rule := range rules {
		names, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resourceNames")
		named = append(named, names...)
	}
	if want := []string{
		"kueue-validating-webhook-configuration",
		"workloads.kueue.x-k8s.io",
	}; !slices.Equal(
		named,
		want,
	) {
		t.Errorf("the role is about %q, want %q", named, want)
	}
	binding := at["kueue-system/kueue-manager-secrets-rolebinding"]
	subjects, _, _ := unstructured.NestedSlice(binding, "subjects")
	if role := text(binding, "roleRef", "name"); role != "kueue-manager-secrets-role" || len(subjects) != 1 {
		t.Fatalf("the binding binds %q to %v", role, subjects)
	}
	account := subjects[0].(map[string]any)
	if account["name"] != "kueue-controller-manager" || account["namespace"] != "kueue-system" {
		t.Errorf("the binding is for %v", account)
	}
	webhooks, _, _ := unstructured.NestedSlice(at["/kueue-mutating-webhook-configuration"], "webhooks")
	if len(webhooks) != 1 {
		t.Fatalf("%d webhooks, want that of TrainJobs and none in the way of pods", len(webhooks))
	}
	url := text(webhooks[0].(map[string]any), "clientConfig", "url")
	if url != "https://127.0.0.1:9443/mutate-trainjob" {
		t.Errorf("the webhook of TrainJobs is called at %q", url)
	}
}

// A certificate with which Kueue were not content it would replace by one that does not hold for loopback.
func TestNewKueueKeys_NeedNoRenewal(t *testing.T) {
	keys, err := cluster.NewKueueKeys()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(keys["ca.key"])
	if block == nil || block.Type != "RSA PRIVATE KEY" {
		t.Fatal("the authority's key is not in the form that Kueue reads")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(keys["ca.crt"])
	for _, test := range []struct{ cert, key, name string }{
		{"ca.crt", "ca.key", "kueue-ca"},
		{"tls.crt", "tls.key", "kueue-webhook-service.kueue-system.svc"},
		{"tls.crt", "tls.key", "127.0.0.1"},
	} {
		pair, err := tls.X509KeyPair(keys[test.cert], keys[test.key])
		if err != nil {
			t.Fatalf("%s: %v", test.cert, err)
		}
		soon := pair.Leaf.NotBefore.AddDate(0, 3, 0) // as far as Kueue looks ahead
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: test.name, CurrentTime: soon})
		if err != nil {
			t.Errorf("%s does not hold for %s: %v", test.cert, test.name, err)
		}
	}
}
