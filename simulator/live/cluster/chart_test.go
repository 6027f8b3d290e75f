package cluster_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// An embedded cluster departs from the chart in the points that this test lists, and in nothing else: its processes are
// reached on loopback and have certificates of the run.
func TestHost_DepartsFromChartAsListed(t *testing.T) {
	hosted, err := cluster.Host(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"lockstep-controller": {
			"--kubeconfig", "--leader-elect", "--metrics-bind-address", "--health-probe-bind-address", "--webhook-host",
			"--webhook-port", "--cert-management", "--webhook-cert-dir", "--status-server-port", "--status-server-url",
		},
		"lockstep-scheduler": {
			"--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig", "--bind-address", "--secure-port",
			"--tls-cert-file", "--tls-private-key-file",
		},
	} {
		of := hosted[name]
		if want := "system:serviceaccount:lockstep-system:" + name; of.User != want {
			t.Errorf("%s runs as %s, want %s", name, of.User, want)
		}
		var departs []string
		for _, arg := range of.Args[len(of.Pod):] {
			flag, _, _ := strings.Cut(arg, "=")
			departs = append(departs, flag)
		}
		if !slices.Equal(departs, want) {
			t.Errorf("%s departs in %v, want %v", name, departs, want)
		}
		if !slices.Equal(of.Args[:len(of.Pod)], of.Pod) {
			t.Errorf("%s has arguments %v, want first those of its Deployment, %v", name, of.Args, of.Pod)
		}
	}
}

// Of the webhooks only how they are called differs: there is no Service that leads anywhere. All other objects are
// applied as they are rendered.
func TestWebhooks_DepartFromChartInAddress(t *testing.T) {
	rendered, err := render.Chart(render.Default())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, object := range rendered.Objects {
		if !strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			continue
		}
		moved := object.DeepCopy()
		if err := cluster.MoveToLoopback(moved, "https://127.0.0.1:9443", []byte("authority")); err != nil {
			t.Fatal(err)
		}
		before, after := object.Object["webhooks"].([]any), moved.Object["webhooks"].([]any)
		for i := range before {
			was, is := before[i].(map[string]any), after[i].(map[string]any)
			if _, url := is["clientConfig"].(map[string]any)["url"]; !url || reflect.DeepEqual(was, is) {
				t.Errorf("%v is called by %v", is["name"], is["clientConfig"])
			}
			was["clientConfig"] = is["clientConfig"]
			seen++
		}
		if !reflect.DeepEqual(object.Object, moved.Object) {
			t.Errorf("%s departs in more than its addresses", object.GetName())
		}
	}
	if seen != 4 {
		t.Errorf("%d webhooks, want 4", seen)
	}
}

// The scheduler of an embedded cluster has the shipped profile: limits, election, plugins and all. With default values
// the chart adds only the place of reservations, which is the default one.
func TestHost_UsesTheShippedProfile(t *testing.T) {
	hosted, err := cluster.Host(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := strings.TrimPrefix(hosted["lockstep-scheduler"].Pod[0], "--config=")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var shipped, used map[string]any
	for text, into := range map[string]*map[string]any{string(chart.Profile()): &shipped, string(content): &used} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	plugins := used["profiles"].([]any)[0].(map[string]any)["pluginConfig"].([]any)
	placement := plugins[0].(map[string]any)["args"].(map[string]any)
	if want := map[string]any{"namespace": render.Default().Namespace}; !reflect.DeepEqual(placement["leases"], want) {
		t.Errorf("reservations are kept in %v, want %v", placement["leases"], want)
	}
	delete(placement, "leases")
	if !reflect.DeepEqual(shipped, used) {
		t.Errorf("an embedded cluster's scheduler runs with\n%v\nwant what is shipped,\n%v", used, shipped)
	}
}
