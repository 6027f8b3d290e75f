package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// Rendered for another namespace and account, no object names the default ones, and every name of a role, a policy, the
// lease or the Service, which the binaries know, is unchanged.
func TestChart_ForAnotherRelease(t *testing.T) {
	other := render.Release{Name: "gangs", Namespace: "gpu-system"}.With("manager.serviceAccount", "trainer-bot")
	before, after := rendered(t, render.Default()), rendered(t, other)
	for id, object := range after {
		text := fmt.Sprint(object.Object)
		if strings.Contains(text, "lockstep-system") && object.GetKind() != "CustomResourceDefinition" {
			t.Errorf("%s still names lockstep-system: %s", id, text)
		}
		was := strings.Replace(
			strings.Replace(id, "gpu-system", "lockstep-system", 1),
			"trainer-bot",
			"lockstep-controller",
			1,
		)
		if before[was] == nil {
			t.Errorf("%s is called otherwise than in the default release", id)
		}
		if accounts := accountsOf(object.Object); strings.Contains(strings.Join(accounts, " "), "lockstep-controller") {
			t.Errorf("%s still speaks of %v", id, accounts)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d objects, and %d by default", len(after), len(before))
	}
	if got, want := other.Account(), "system:serviceaccount:gpu-system:trainer-bot"; got != want {
		t.Errorf("the account is %s, want %s", got, want)
	}
}

// accountsOf returns the ServiceAccounts and users that an object names.
func accountsOf(value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		if value["kind"] == "ServiceAccount" && value["name"] != nil {
			found = append(found, fmt.Sprint(value["name"]))
		}
		if name, ok := value["serviceAccountName"]; ok {
			found = append(found, fmt.Sprint(name))
		}
		for _, inner := range value {
			found = append(found, accountsOf(inner)...)
		}
	case []any:
		for _, inner := range value {
			found = append(found, accountsOf(inner)...)
		}
	case string:
		if _, user, ok := strings.Cut(value, "system:serviceaccount:"); ok {
			found = append(found, user)
		}
	}
	return found
}

// Values that do not fit the schema are refused, with the value and the permitted ones.
func TestChart_ValuesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		path  string
		value any
		want  string
	}{
		{"namespaces", []any{"b", "B"}, "'B' does not match pattern"},
		{"namespaces", []any{"b", "b"}, "items at 0 and 1 are equal"},
		{"manager.serviceAccount", "x'y", "does not match pattern"},
		{"gangApi", "nativ", "value must be one of 'auto', 'native', 'resources'"},
		{"gangs.default", true, "at '/gangs/default'"},
		{"replicas", 3, "additional properties 'replicas' not allowed"},
		{"manager.replica", 3, "additional properties 'replica' not allowed"},
		{"podSecurityContext.runAsUser", 0, "minimum: got 0, want 1"},
		{"podSecurityContext.runAsUser", "any", "got string, want null or integer"},
		{"podSecurityContext.fsGroup", 1, "additional properties 'fsGroup' not allowed"},
		{"image.digests", map[string]any{"lockstep-manager": "sha256:1"}, "lockstep-manager"},
	} {
		_, err := render.Chart(render.Default().With(c.path, c.value))
		if got := fmt.Sprint(err); err == nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v: %v, want %q", c.path, c.value, err, c.want)
		}
	}
	// Ports and names that other objects of the chart depend on.
	for _, c := range []struct {
		path  string
		value any
		want  string
	}{
		{"args", []any{"--v=2", "--webhook-port=9444"}, "args: --webhook-port: set manager.config.webhook.port"},
		{"args", []any{"--webhook-port", "9444"}, "args: --webhook-port: set manager.config.webhook.port"},
		{"args", []any{"--status-server-port=1"}, "--status-server-port: set manager.config.statusServer.port"},
		{
			"config.certManagement.webhookServiceName", "trainer",
			"manager.config.certManagement.webhookServiceName: must be lockstep-controller-webhook or left out",
		},
		{
			"config.certManagement.webhookSecretName", "trainer",
			"manager.config.certManagement.webhookSecretName: must be lockstep-webhook-cert or left out",
		},
		{"config.certManagement.webhookSecretName", "lockstep-webhook-cert", ""},
		{"config.webhook.port", 10443, "must differ: two have port 10443"},
		{"config.metrics.bindAddress", ":8081", "must differ: two have port 8081"},
		{"config.metrics.bindAddress", "0", ""},
		{"config.health.healthProbeBindAddress", "0", "manager.config.health.healthProbeBindAddress: must have a port"},
		{"args", []any{"--metrics-bind-address=:1"}, "--metrics-bind-address: set manager.config.metrics.bindAddress"},
		{"args", []any{"--health-probe-bind-address=:1"}, "set manager.config.health.healthProbeBindAddress"},
		{"config.certManagement", nil, ""},
		{"config.webhook", nil, ""},
	} {
		_, err := render.Chart(render.Default().With("manager."+c.path, c.value))
		if (err == nil) != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v: %v, want %q", c.path, c.value, err, c.want)
		}
	}
	_, err := render.Chart(render.Default().With("takeOver", "kubeflow").With("namespaces", []any{"a"}))
	if got := fmt.Sprint(err); err == nil || !strings.Contains(got, "would have no controller") {
		t.Errorf("a take-over of some namespaces: %v", err)
	}
}
