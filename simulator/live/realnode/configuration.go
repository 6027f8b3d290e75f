package realnode

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// containerd is the configuration of the node's containerd: all its files are in the node's folder. Containers inherit
// the OOM score of the process that starts them, because a process without CAP_SYS_RESOURCE may not lower it.
func (n *Node) containerd() string {
	return fmt.Sprintf(`version = 3
root = %[1]q
state = %[2]q
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.internal.v1.tracing"]
[grpc]
  address = %[3]q
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %[4]q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [%[5]q]
    conf_dir = %[6]q
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
%[8]s    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = %[7]q
      SystemdCgroup = false
`, n.file("containerd"), n.file("containerd-state"), n.socket(), RankImage, n.programs, n.file("cni"), n.programs+"/runc",
		n.baseSpec())
}

// registered is a taint as an entry of a list in a flow of YAML; nothing for none.
func registered(taint corev1.Taint) string {
	if taint.Key == "" {
		return ""
	}
	return fmt.Sprintf("{key: %q, value: %q, effect: %q}", taint.Key, taint.Value, taint.Effect)
}

// socket returns the path on which the node's containerd listens.
func (n *Node) socket() string { return n.file("containerd.sock") }

// kubelet is the configuration of the node's kubelet, with its pods below a control group.
func (n *Node) kubelet(group string) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /%[2]s
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
clusterDNS: [%[4]s]
clusterDomain: %[5]s
registerWithTaints: [%[6]s]
evictionHard: {memory.available: 50Mi}
imageGCHighThresholdPercent: 100
containerRuntimeEndpoint: unix://%[3]s
healthzPort: 0
resolvConf: ""
`, n.Address, group, n.socket(), DNSAddress, ClusterDomain, registered(n.taint))
}

// pods returns the network configuration for pods of the n-th node: on the bridge, with the address of the control
// plane as the way out.
func pods(n int) string {
	first, last := podRange(n)
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0", "name": "lockstep", "plugins": [{
    "type": "bridge", "bridge": %q, "isGateway": false,
    "ipam": {
      "type": "host-local", "dataDir": "/var/lib/cni/networks",
      "ranges": [[{"subnet": %q, "rangeStart": %q, "rangeEnd": %q, "gateway": %q}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`, Bridge, network, first, last, Address)
}
