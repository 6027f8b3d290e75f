package cluster_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/expression"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

const webhooks = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating-webhook-configuration}
webhooks:
- name: vjobset.kb.io
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: webhook-service, namespace: system, path: /validate-jobset}}
  rules: [{apiGroups: [jobset.x-k8s.io], apiVersions: [v1alpha2], operations: [CREATE], resources: [jobsets]}]
- name: vpod.kb.io
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: webhook-service, namespace: system, path: /validate--v1-pod}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
`

func TestOnLoopback_MovesWebhookAddresses(t *testing.T) {
	moved, err := cluster.OnLoopback([]byte(webhooks), "https://127.0.0.1:9443", []byte("authority"))
	if err != nil || len(moved) != 1 {
		t.Fatalf("%d configurations, %v", len(moved), err)
	}
	object, err := cluster.AsJobSet(moved[0])
	if err != nil {
		t.Fatal(err)
	}
	if object.GetName() != "jobset-validating-webhook-configuration" {
		t.Errorf("the configuration is named %s", object.GetName())
	}
	list, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for i, want := range []string{"https://127.0.0.1:9443/validate-jobset", "https://127.0.0.1:9443/validate--v1-pod"} {
		webhook := list[i].(map[string]any)
		if url, _, _ := unstructured.NestedString(webhook, "clientConfig", "url"); url != want {
			t.Errorf("webhook %d is called at %q, want %q", i, url, want)
		}
		if _, named, _ := unstructured.NestedMap(webhook, "clientConfig", "service"); named {
			t.Errorf("webhook %d still names a Service, and there is no cluster network", i)
		}
		if bundle, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle"); bundle != "YXV0aG9yaXR5" {
			t.Errorf("webhook %d trusts %q, want the authority in base64", i, bundle)
		}
		_, limited, _ := unstructured.NestedMap(webhook, "objectSelector")
		if isPods := i == 1; limited != isPods {
			t.Errorf("webhook %d is limited to a JobSet's pods: %t, want %t", i, limited, isPods)
		}
	}
}

func TestKWOKConfig_PodsRunForAnnotatedTime(t *testing.T) {
	for _, test := range []struct {
		nodes int
		lease float64
	}{{74, 40}, {5000, 3600}} {
		config, err := cluster.KWOKConfig(test.nodes, false)
		if err != nil {
			t.Fatal(err)
		}
		stages := 0
		for document := range strings.SplitSeq(string(config), "\n---\n") {
			var object unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				t.Fatalf("%v in:\n%s", err, document)
			}
			switch {
			case object.GetKind() == "KwokConfiguration":
				lease, _, _ := unstructured.NestedFieldNoCopy(object.Object, "options", "nodeLeaseDurationSeconds")
				if lease != test.lease {
					t.Errorf("%d nodes: leases of %v s, want %v s", test.nodes, lease, test.lease)
				}
				continue
			case object.GetName() == "pod-complete":
				from, _, _ := unstructured.NestedString(
					object.Object,
					"spec",
					"delay",
					"durationFrom",
					"expressionFrom",
				)
				if want := `.metadata.annotations["` + workload.RunTimeAnnotation + `"]`; from != want {
					t.Errorf("the run time comes from %q, want %q", from, want)
				}
			}
			stages++
		}
		if stages != 6 {
			t.Errorf(
				"%d stages, want nodes' birth and heartbeat, pods' start, completion, termination and removal",
				stages,
			)
		}
	}
}

// What serves ssh does not end by itself; whatever else a Job runs does.
func TestKWOKConfig_ServersOfSSHStay(t *testing.T) {
	config, err := cluster.KWOKConfig(74, false)
	if err != nil {
		t.Fatal(err)
	}
	type condition struct {
		Key      string
		Operator internalversion.SelectorOperator
		Values   []string
	}
	var stage struct {
		Spec struct {
			Selector struct{ MatchExpressions []condition }
		}
	}
	for document := range strings.SplitSeq(string(config), "\n---\n") {
		if strings.Contains(document, "name: pod-complete\n") {
			if err := yaml.Unmarshal([]byte(document), &stage); err != nil {
				t.Fatal(err)
			}
		}
	}
	for container, want := range map[string]bool{
		`{}`:                                  true,
		`{command: [mpirun, python]}`:         true,
		`{command: [], args: [sshd]}`:         true,
		`{command: [/usr/sbin/sshd, -De]}`:    false,
		`{}, {command: [/usr/sbin/sshd, -D]}`: false,
		`{command: [sshd, -D]}`:               false,
		`{command: [not-sshd]}`:               true,
	} {
		var pod map[string]any
		if err := yaml.Unmarshal(
			[]byte(`{metadata: {ownerReferences: [{kind: Job}]}, status: {phase: Running}, spec: {containers: [`+
				container+`]}}`),
			&pod,
		); err != nil {
			t.Fatal(err)
		}
		ends := len(stage.Spec.Selector.MatchExpressions) > 0
		for _, condition := range stage.Spec.Selector.MatchExpressions {
			requirement, err := expression.NewRequirement(condition.Key, condition.Operator, condition.Values)
			if err != nil {
				t.Fatal(err)
			}
			holds, err := requirement.Matches(t.Context(), pod)
			if err != nil {
				t.Fatal(err)
			}
			ends = ends && holds
		}
		if ends != want {
			t.Errorf("containers [%s] end: %t, want %t", container, ends, want)
		}
	}
}

// Where nodes have devices, a pod with claims waits until they are prepared, as it would for its kubelet.
func TestKWOKConfig_PodsWaitForDevices(t *testing.T) {
	for _, cliques := range []bool{false, true} {
		config, err := cluster.KWOKConfig(74, cliques)
		if err != nil {
			t.Fatal(err)
		}
		if waits := strings.Contains(string(config), nvlink.PreparedAnnotation); waits != cliques {
			t.Errorf("with cliques %t: pods wait for their claims: %t", cliques, waits)
		}
	}
}
