package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
)

// A scene counts accelerators, so the devices that claims hold or request are counted by number, once for all pods that
// share the claim.
func TestFromSnapshot_CountsClaims(t *testing.T) {
	const published = `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {extendedResourceName: nvidia.com/gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1}
spec:
  driver: gpu.nvidia.com
  nodeName: a1
  pool: {name: a1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {type: {string: gpu}}}
  - {name: gpu-1, attributes: {type: {string: gpu}}}
  - {name: gpu-2, attributes: {type: {string: gpu}}}
  - {name: gpu-3-mig, attributes: {type: {string: mig}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two, namespace: ml}
status:
  allocation: {devices: {results: [
    {request: r, driver: gpu.nvidia.com, pool: a1, device: gpu-0}, {request: r, driver: gpu.nvidia.com, pool: a1, device: gpu-1}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: part, namespace: ml}
status: {allocation: {devices: {results: [{request: r, driver: gpu.nvidia.com, pool: a1, device: gpu-3-mig}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: three, namespace: ml}
spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, count: 3}}, {name: nic, exactly: {deviceClassName: nic, count: 9}}]}}}
`
	claims := func(claim string) string { return "  resourceClaims: [{name: c, " + claim + "}]\n" }
	bare := strings.Replace(node("a1", "a-rack", ""), `, nvidia.com/gpu: "8"`, "", 1)
	s := from(t, bare+node("a2", "a-rack", "")+published+
		pod(
			"first",
			0,
			on("a1")+claims("resourceClaimName: two"),
			"",
		)+pod("second", 0, on("a1")+claims("resourceClaimName: two"), "")+
		pod("mig", 0, on("a1")+claims("resourceClaimName: part"), "")+
		pod("waits", 1, claims("resourceClaimTemplateName: three"), "")+
		pod("strange", 0, claims("resourceClaimTemplateName: none"), ""), nil, scenario.Options{})
	at, _ := s.Ledger.Tree.Index("a1")
	if s.Ledger.Total[at][s.Accelerator] != 3 || s.Ledger.Free[at][s.Accelerator] != 1 || !s.Devices[at] {
		t.Errorf("%v of %v are free", s.Ledger.Free[at], s.Ledger.Total[at])
	}
	for _, j := range s.Jobs {
		first := objects(t, s).Jobs[j.ID].Pods[0]
		asked := first.Spec.Containers[0].Resources.Requests[corev1.ResourceName("nvidia.com/gpu")]
		want := map[string]int64{"ml.waits": 4}[j.ID]
		if j.Accelerators != want || asked.Value() != want || len(first.Spec.ResourceClaims) > 0 {
			t.Errorf("%s asks for %s, %d", j.ID, &asked, j.Accelerators)
		}
	}
	if !noted(s, "what 2 claims have is not counted: claim ml/part, which has a part of an accelerator, "+
		"claim c of ml/strange, whose template is not in the snapshot") {
		t.Errorf("notes %q", s.Notes)
	}
}

// Recorded changes are events; a node that is added later does not exist before.
func TestFromSnapshot_NodeChangesAreEvents(t *testing.T) {
	patch := func(name, method, more string, seconds int) string {
		return fmt.Sprintf(
			"---\napiVersion: action.kwok.x-k8s.io/v1alpha1\nkind: ResourcePatch\nresource: {version: v1, resource: nodes}\n"+
				"target: {name: %s}\ndurationNanosecond: %d\nmethod: %s\n%s",
			name,
			seconds*1e9,
			method,
			more,
		)
	}
	object := "template: {apiVersion: v1, kind: Node, metadata: {labels: {fabric.topograph.run/tier-0: a-rack}}, " +
		"status: {allocatable: {nvidia.com/gpu: 8}}}\n"
	s := from(
		t,
		racks()+pod(
			"p",
			1,
			"",
			"",
		)+patch(
			"a3",
			"create",
			object,
			60,
		)+patch(
			"a1",
			"delete",
			"",
			30,
		)+patch(
			"a1",
			"create",
			object,
			90,
		)+
			patch(
				"zz",
				"delete",
				"",
				95,
			),
		nil,
		scenario.Options{},
	)
	var got []string
	for _, e := range s.Events {
		got = append(got, fmt.Sprintf("%s %s %s", e.At, e.Kind, s.Ledger.Tree.Node(e.Nodes[0])))
	}
	if want := []string{"0s fail a3", "30s fail a1", "1m0s return a3", "1m30s return a1"}; !cmp.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// A missing input that a scene needs is refused by name; other missing inputs are mentioned.
func TestFromSnapshot_RefusesIncomplete(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{pod("p", 1, "", ""), "the snapshot: it says nothing of nodes; take it again with all kinds"},
		{racks(), "the snapshot: it says nothing of pods"},
		{
			racks() + member("g", 0, 1, "", ""),
			"the snapshot: it says nothing of podgroups; pod ml/g-0 is in one; take it again with them",
		},
		{strings.ReplaceAll(racks(), "nvidia.com/gpu", "cores") + pod("p", 0, "", ""), "the fleet has no accelerators"},
	} {
		if _, err := importer.FromSnapshot(
			taken(t, tc.text),
			nil,
			scenario.Options{},
		); !badinput.Is(err) ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("got  %v\nwant %s", err, tc.want)
		}
	}
	s := from(t, racks()+pod("p", 1, "", ""), nil, scenario.Options{})
	if !noted(s, "the snapshot has no namespaces, podgroups, poddisruptionbudgets, deviceclasses, resourceslices,") {
		t.Errorf("notes %q", s.Notes)
	}
	if _, err := importer.FromSnapshot(
		taken(t, racks()+pod("p", 1, "", "")),
		nil,
		scenario.Options{DefaultRunTime: -1},
	); !badinput.Is(
		err,
	) {
		t.Errorf("error %v", err)
	}
}
