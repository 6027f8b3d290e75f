package probe_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
)

// server is an API server that drops the fields that keep does not retain; without keep and fault it serves no
// PodGroups.
func server(keep func(*schedulingv1beta1.PodGroup), fault error) *fake.Clientset {
	client := fake.NewClientset()
	if keep != nil || fault != nil {
		client.Resources = []*metav1.APIResourceList{
			{
				GroupVersion: schedulingv1beta1.SchemeGroupVersion.String(),
				APIResources: []metav1.APIResource{{Name: "podgroups"}},
			},
		}
	}
	client.PrependReactor("create", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if fault != nil {
			return true, nil, fault
		}
		group := action.(clienttesting.CreateAction).GetObject().(*schedulingv1beta1.PodGroup).DeepCopy()
		keep(group)
		return true, group, nil
	})
	return client
}

func TestProbe_ModeFollowsTheServer(t *testing.T) {
	all := func(*schedulingv1beta1.PodGroup) {}
	noConstraints := func(g *schedulingv1beta1.PodGroup) { g.Spec.SchedulingConstraints = nil }
	noClaims := func(g *schedulingv1beta1.PodGroup) { g.Spec.ResourceClaims = nil }
	neither := func(g *schedulingv1beta1.PodGroup) { noConstraints(g); noClaims(g) }
	for _, test := range []struct {
		name                string
		keep                func(*schedulingv1beta1.PodGroup)
		mode                probe.Mode
		constraints, claims bool
		missing             string
	}{
		{"everything", all, probe.Full, true, true, ""},
		{"no constraints", noConstraints, probe.Groups, false, true, "TopologyAwareWorkloadScheduling=true"},
		{"no claims", noClaims, probe.Groups, true, false, "DRAWorkloadResourceClaims=true"},
		{
			"groups only", neither, probe.Groups, false, false,
			"TopologyAwareWorkloadScheduling=true,DRAWorkloadResourceClaims=true",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			offer, err := probe.Cluster(t.Context(), server(test.keep, nil), "lockstep-system", probe.Choice{})
			if err != nil {
				t.Fatal(err)
			}
			if offer.Mode != test.mode || offer.Constraints() != test.constraints || offer.Claims() != test.claims {
				t.Errorf(
					"offer %+v, want mode %s, constraints %t, claims %t",
					offer,
					test.mode,
					test.constraints,
					test.claims,
				)
			}
			line := offer.Missing()
			if (line == "") != (test.missing == "") ||
				!strings.Contains(line, "--feature-gates="+test.missing) && line != "" {
				t.Errorf("missing %q, want the gates %q", line, test.missing)
			}
			if strings.Contains(line, "\n") {
				t.Errorf("missing is more than one line: %q", line)
			}
		})
	}
}

func TestProbe_NVLinkFollowsDiscovery(t *testing.T) {
	all := func(*schedulingv1beta1.PodGroup) {}
	for _, served := range []bool{false, true} {
		client := server(all, nil)
		if served {
			client.Resources = append(client.Resources, &metav1.APIResourceList{
				GroupVersion: "resource.nvidia.com/v1beta1",
				APIResources: []metav1.APIResource{{Name: "computedomains"}},
			})
		}
		offer, err := probe.Cluster(t.Context(), client, "lockstep-system", probe.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if offer.ComputeDomains != served || offer.Mode != probe.Full {
			t.Errorf("offer %+v, want mode full, and ComputeDomains %t", offer, served)
		}
	}
}

func TestProbe_FaultIsNoAnswer(t *testing.T) {
	broken := errors.New("connection refused")
	_, err := probe.Cluster(t.Context(), server(nil, broken), "lockstep-system", probe.Choice{})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "lockstep-system") {
		t.Errorf("a server that cannot be asked: %v", err)
	}
}

// Where PodGroups are custom resources, no dry run can show more than discovery.
func TestProbe_ResourcesFollowDiscovery(t *testing.T) {
	client := server(nil, nil)
	if _, err := probe.Cluster(
		t.Context(),
		client,
		"lockstep-system",
		probe.Choice{},
	); !errors.Is(
		err,
		gangapi.ErrNoAPI,
	) {
		t.Errorf("a server without PodGroups: %v", err)
	}
	client.Resources = append(client.Resources, &metav1.APIResourceList{
		GroupVersion: gangapi.Resources.Version().String(), APIResources: []metav1.APIResource{{Name: gangapi.Plural}},
	})
	offer, err := probe.Cluster(t.Context(), client, "lockstep-system", probe.Choice{Remember: true})
	if err != nil {
		t.Fatal(err)
	}
	if offer.Mode != probe.Resources || offer.API != gangapi.Resources || offer.Constraints() || offer.Claims() {
		t.Errorf("offer %+v, want mode resources, and no field of the native API", offer)
	}
	if line := offer.Missing(); !strings.Contains(line, "custom resources") || strings.Contains(line, "\n") {
		t.Errorf("missing %q", line)
	}
}

// An upgrade of the cluster that serves more changes nothing: the gangs that run stay in their API. A process that
// starts reports it.
func TestProbe_ChoiceIsRemembered(t *testing.T) {
	client := server(nil, nil)
	client.Resources = []*metav1.APIResourceList{{
		GroupVersion: gangapi.Resources.Version().String(), APIResources: []metav1.APIResource{{Name: gangapi.Plural}},
	}}
	ask := func(wanted gangapi.API) gangapi.API {
		offer, err := probe.Cluster(
			t.Context(),
			client,
			"lockstep-system",
			probe.Choice{Wanted: wanted, Remember: true},
		)
		if err != nil {
			t.Fatal(err)
		}
		return offer.API
	}
	if got := ask(""); got != gangapi.Resources {
		t.Fatalf("gangs are kept in %q at first", got)
	}
	upgraded := server(func(*schedulingv1beta1.PodGroup) {}, nil)
	client.Resources = append(client.Resources, upgraded.Resources...)
	client.PrependReactor("create", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), nil
	})
	for _, step := range []struct{ wanted, want gangapi.API }{
		{"", gangapi.Resources},
		{gangapi.Native, gangapi.Native},
		{"", gangapi.Native},
		{gangapi.Resources, gangapi.Resources},
		{"", gangapi.Resources},
	} {
		if got := ask(step.wanted); got != step.want {
			t.Errorf("asked for %q, gangs are kept in %s, want %s", step.wanted, got, step.want)
		}
	}
}

// A cluster that serves PodGroups at v1 only, as a later release may, is probed at that version.
func TestProbe_LaterVersionIsProbedAtItsPath(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			asked = r.URL.Path + "?" + r.URL.RawQuery
			content, _ := io.ReadAll(r.Body)
			_, _ = w.Write(content)
		case r.URL.Path == "/apis/scheduling.k8s.io/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"scheduling.k8s.io/v1",` +
				`"resources":[{"name":"podgroups","kind":"PodGroup","namespaced":true,"verbs":["create"]}]}`))
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write(
				[]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`),
			)
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	offer, err := probe.Cluster(t.Context(), client, "lockstep-system", probe.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	if offer.API != gangapi.NativeV1 || offer.Mode != probe.Full {
		t.Errorf("offer %+v, want mode full at version v1", offer)
	}
	if want := "/apis/scheduling.k8s.io/v1/namespaces/lockstep-system/podgroups?dryRun=All"; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
}
