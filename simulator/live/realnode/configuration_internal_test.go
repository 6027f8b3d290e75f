package realnode

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// A kubelet warns of fields that it does not know, and starts without them.
func TestKubelet_ConfigurationHasOnlyKnownFields(t *testing.T) {
	for name, taint := range map[string]corev1.Taint{
		"none": {}, "one": {Key: "nvidia.com/gpu", Value: "present: \"yes\"", Effect: corev1.TaintEffectNoSchedule},
	} {
		n := &Node{Name: "node-1", Address: nodeAddress(1), dir: "/tmp/a folder", taint: taint}
		var got kubeletconfigv1beta1.KubeletConfiguration
		if err := yaml.UnmarshalStrict([]byte(n.kubelet("lockstep/node-1")), &got); err != nil {
			t.Fatalf("taint %s: %v", name, err)
		}
		want := []corev1.Taint{taint}
		if taint.Key == "" {
			want = nil
		}
		if got.Address != "10.99.0.2" || got.CgroupRoot != "/lockstep/node-1" ||
			!slices.Equal(got.RegisterWithTaints, want) {
			t.Errorf(
				"taint %s: address %s, control group %s, taints %v",
				name,
				got.Address,
				got.CgroupRoot,
				got.RegisterWithTaints,
			)
		}
	}
}

// Each node's pods have addresses of their own, beside those of nodes, the control plane and Services.
func TestPods_AddressesAreApart(t *testing.T) {
	const most = 200
	used := map[netip.Addr]string{netip.MustParseAddr(Address): "the control plane"}
	claim := func(of string, first, last netip.Addr) {
		for at := first; ; at = at.Next() {
			if other, taken := used[at]; taken {
				t.Fatalf("%s is that of %s and of %s", at, other, of)
			}
			used[at] = of
			if at == last {
				return
			}
		}
	}
	all, services := netip.MustParsePrefix(network), netip.MustParsePrefix(serviceRange)
	for n := 1; n <= most; n++ {
		node := netip.MustParseAddr(nodeAddress(n))
		claim(nodeName(n), node, node)
		var of struct {
			Plugins []struct {
				IPAM struct {
					Ranges [][]struct{ Subnet, RangeStart, RangeEnd, Gateway string }
				}
			}
		}
		if err := json.Unmarshal([]byte(pods(n)), &of); err != nil {
			t.Fatal(err)
		}
		pool := of.Plugins[0].IPAM.Ranges[0][0]
		if pool.Subnet != network || pool.Gateway != Address {
			t.Fatalf("node %d: %+v", n, pool)
		}
		claim("a pod of "+nodeName(n), netip.MustParseAddr(pool.RangeStart), netip.MustParseAddr(pool.RangeEnd))
	}
	for at, of := range used {
		if !all.Contains(at) || services.Contains(at) {
			t.Errorf("%s, of %s, is outside %s or a Service's", at, of, all)
		}
	}
}
