package topology

import (
	"errors"
	"maps"
	"strings"
)

// Clique is a partition of an NVLink domain: all that train by NVLink together are in one. Two partitions of a rack are
// two cliques, and so are partitions of one number in two racks.
type Clique struct {
	// Domain is the physical domain, Partition the part of it; "" if the source of the domain's name knows no
	// partitions.
	Domain, Partition string
}

// String is the clique as NVIDIA's GPU discovery writes it: the domain, a dot, the partition.
func (c Clique) String() string {
	if c.Partition == "" {
		return c.Domain
	}
	return c.Domain + "." + c.Partition
}

// ErrPartition indicates a clique label that does not read <domain>.<partition>.
var ErrPartition = errors.New("clique label without partition")

// CliqueOf returns the clique that a node's labels name: that of NVIDIA's GPU discovery or, without one, an NVLink
// domain that another label names. by is the key of that label; "" for a node in no clique. The error is ErrPartition:
// the label is there, and cannot be read.
func CliqueOf(labels map[string]string) (c Clique, by string, err error) {
	if value := labels[LabelClique]; value != "" {
		dot := strings.LastIndexByte(value, '.')
		if dot <= 0 || dot == len(value)-1 {
			return Clique{}, LabelClique, ErrPartition
		}
		return Clique{value[:dot], value[dot+1:]}, LabelClique, nil
	}
	key := nvlinkKey(labels)
	switch {
	case key == "":
		return Clique{}, "", nil
	case key == keyTopographDomain:
		c.Partition = labels[keyTopographPart]
	case key == keyGoogleSubblock && labels[keyGoogleBlock] != "":
		c.Domain = labels[keyGoogleBlock] + "/" // a subblock is unique in its block
	}
	c.Domain += labels[key]
	return c, key, nil
}

const (
	keyTopographDomain = "accelerator.topograph.run/domain"
	keyTopographPart   = "accelerator.topograph.run/sub-domain"
	keyGoogleBlock     = "cloud.google.com/gce-topology-block"
	keyGoogleSubblock  = "cloud.google.com/gce-topology-subblock"
)

// nvlinkKey is the key of the label that names the node's NVLink domain, of several the innermost one of the ladder; ""
// if none does. NVIDIA's own is not among them.
func nvlinkKey(labels map[string]string) string {
	for _, key := range [...]string{
		keyTopographDomain,
		"network.topology.nvidia.com/accelerator",
		"topology.nebius.com/nvl-instance-group-id",
		"topology.nebius.com/tier-0",
		"oci.oraclecloud.com/host.gpu_memory_fabric_id",
		"ds.coreweave.com/nvlink.domain",
		"topology.k8s.aws/ultraserver-id",
		"topology.k8s.aws/capacity-block-id",
	} {
		if labels[key] != "" {
			return key
		}
	}
	if labels[keyGoogleSubblock] != "" && isNVLRack(labels) {
		return keyGoogleSubblock
	}
	return ""
}

// isNVLRack reports whether a node of Google's is a tray of a rack that NVLink connects: there, and only there, a
// subblock is one NVLink domain.
func isNVLRack(labels map[string]string) bool {
	for _, key := range [...]string{
		"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "node.kubernetes.io/instance-type",
	} {
		value := strings.ToLower(labels[key])
		for _, sign := range [...]string{"gb200", "gb300", "a4x-"} {
			if strings.Contains(value, sign) {
				return true
			}
		}
	}
	return false
}

// WithClique returns the node with its clique as the value of NVIDIA's label, whichever label names the clique.
// discovered are the other labels that name cliques of nodes that carry NVIDIA's too (see Discovered): where NVIDIA's
// discovery runs, a node without its label is in no clique.
func WithClique(n Node, discovered map[string]bool) Node {
	clique, by, err := CliqueOf(n.Labels)
	if err != nil || by == "" || by == LabelClique || discovered[by] {
		return n
	}
	labels := maps.Clone(n.Labels)
	labels[LabelClique] = clique.String()
	return Node{n.Name, labels}
}

// Discovered returns the keys of labels that name NVLink domains of nodes whose clique NVIDIA's GPU discovery names.
func Discovered(nodes []Node) map[string]bool {
	var keys map[string]bool
	for _, n := range nodes {
		if n.Labels[LabelClique] == "" {
			continue
		}
		if key := nvlinkKey(n.Labels); key != "" && !keys[key] {
			if keys == nil {
				keys = make(map[string]bool)
			}
			keys[key] = true
		}
	}
	return keys
}
