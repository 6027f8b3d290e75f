package controller_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/certificate"
	"github.com/lockstep-project/lockstep/manifests/render"
)

// TestServiceMonitor_FindsTheController checks that a scraper verifies the served certificate, at a port of the
// Service, and may read.
func TestServiceMonitor_FindsTheController(t *testing.T) {
	release := render.Default().With("serviceMonitor", map[string]any{
		"enabled": true, "readers": []any{map[string]any{"name": "prometheus-k8s", "namespace": "monitoring"}},
	})
	rendered, err := render.Chart(release)
	if err != nil {
		t.Fatal(err)
	}
	monitor := rendered.Find("ServiceMonitor", "lockstep-controller")[0]
	var binding rbacv1.ClusterRoleBinding
	charted(t, release, "ClusterRoleBinding", "lockstep-metrics-reader-monitoring-prometheus-k8s", &binding)
	var service corev1.Service
	options := deployedOptions(t, release)
	charted(t, release, "Service", options.WebhookService, &service)

	var spec struct {
		Selector  struct{ MatchLabels map[string]string }
		Endpoints []struct {
			Port, Scheme, Path string
			TLSConfig          struct {
				ServerName string
				CA         struct{ Secret corev1.SecretKeySelector }
			}
		}
	}
	text, err := yaml.Marshal(monitor.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	if !labels.SelectorFromSet(spec.Selector.MatchLabels).Matches(labels.Set(service.Labels)) ||
		monitor.GetNamespace() != service.Namespace {
		t.Errorf("%v in %s does not select the Service", spec.Selector.MatchLabels, monitor.GetNamespace())
	}
	endpoint := spec.Endpoints[0]
	if endpoint.Scheme != "https" || endpoint.Path != "/metrics" ||
		!slices.ContainsFunc(
			service.Spec.Ports,
			func(port corev1.ServicePort) bool { return port.Name == endpoint.Port },
		) {
		t.Errorf("the endpoint %+v is not the Service's", endpoint)
	}
	key := types.NamespacedName{Namespace: options.Namespace, Name: options.WebhookService}
	if !slices.Contains(certificate.Hosts(key, options.WebhookHost), endpoint.TLSConfig.ServerName) {
		t.Errorf("no certificate is served for %s", endpoint.TLSConfig.ServerName)
	}
	if ca := endpoint.TLSConfig.CA.Secret; ca.Name != options.WebhookSecret || ca.Key != certificate.AuthorityCert {
		t.Errorf("the authority is not in %s/%s", ca.Name, ca.Key)
	}
	if binding.RoleRef.Name != "lockstep-metrics-reader" {
		t.Errorf("the scraper is bound to %s", binding.RoleRef.Name)
	}
}
