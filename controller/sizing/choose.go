package sizing

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// headroom is the part of a device's memory that stays free, in per cent: as much as the model may be wrong. It also
// covers CUDA's context, NCCL's buffers and the allocator's fragmentation.
const headroom = 20

// Work describes a training that needs devices.
type Work struct {
	// About names the trained model, as the beginning of a sentence.
	About string
	// On returns the training on so many devices.
	On func(devices int64) Training
	// Nodes and PerNode are the numbers of nodes and of devices on each that are decided already; 0 for those that are
	// not.
	Nodes, PerNode int64
	// MostNodes, LeastDevices and MostDevices bound the choice; 0 for no bound. Bound names the source of the upper
	// ones, as the end of a sentence.
	MostNodes, LeastDevices, MostDevices int64
	Bound                                string
	// Mend is the way to need less memory, as a sentence without a capital and a period.
	Mend string
	// Resource is the only resource that counts; empty for any.
	Resource corev1.ResourceName
	// Admits reports whether pods of the job may be on a node; nil for all nodes.
	Admits func(Node) bool
}

// Choice is nodes x devices.
type Choice struct {
	Resource       corev1.ResourceName
	Nodes, PerNode int64
	// PinKey and PinValue are the node label that the pods need because GPUs of the same resource on other nodes are
	// too small; empty if none are.
	PinKey, PinValue string
	// Words is the arithmetic, a sentence.
	Words string
}

// candidate is a choice with its criteria of comparison.
type candidate struct {
	offer
	count, per int64
	inDomain   bool
	training   Training
	estimate   Estimate
}

func (c candidate) devices() int64 { return c.count * c.per }

// Choose returns the smallest number of devices that have the memory, on as few nodes as that takes; the reason is not
// empty if there is none, or the fleet is not known. It prefers one NVLink domain, then fewer devices, fewer nodes,
// smaller ones, and the more numerous kind. On one node the number divides that of the node's devices, so that no odd
// rest stays; several nodes are used whole.
func Choose(work Work, fleet Fleet) (chosen Choice, reason string) {
	if !fleet.Known {
		return Choice{}, "the nodes of the cluster are not known yet; create the job again in a moment"
	}
	open := admitted(work, fleet.Nodes)
	var best, nearest *candidate
	for _, offered := range offers(open) {
		if offered.memory == 0 {
			continue
		}
		found, closest := work.smallest(offered)
		if found != nil && (best == nil || found.before(*best)) {
			best = found
		}
		if closest != nil && (nearest == nil || closest.lacks() < nearest.lacks()) {
			nearest = closest
		}
	}
	switch {
	case best != nil:
		return best.choice(work, offers(fleet.Nodes)), ""
	case nearest != nil:
		return Choice{}, nearest.tooSmall(work)
	default:
		return Choice{}, nothing(work, fleet.Nodes, open)
	}
}

// admitted returns the nodes on which pods of the work may be.
func admitted(work Work, nodes []Node) []Node {
	var out []Node
	for _, node := range nodes {
		if !node.Unschedulable && (work.Resource == "" || node.Resource == work.Resource) &&
			(work.Admits == nil || work.Admits(node)) {
			out = append(out, node)
		}
	}
	return out
}

// smallest returns the smallest candidate of a kind that fits, and the one that lacks least if none does; nil if the
// kind has none.
func (w Work) smallest(offered offer) (fits, nearest *candidate) {
	for _, shape := range w.shapes(offered) {
		tried := candidate{offer: offered, count: shape[0], per: shape[1]}
		tried.training = w.On(tried.devices())
		tried.estimate = tried.training.On(tried.devices())
		host := offered.devices / tried.per // pods that a node holds
		tried.inDomain = (tried.count+host-1)/host <= offered.together
		if tried.lacks() <= 0 {
			return &tried, nearest
		}
		if nearest == nil || tried.lacks() < nearest.lacks() {
			nearest = &tried
		}
	}
	return nil, nearest
}

// shapes returns nodes x devices on nodes of a kind, by the number of devices.
func (w Work) shapes(offered offer) [][2]int64 {
	var out [][2]int64
	add := func(count, per int64) {
		if count*per >= max(1, w.LeastDevices) && count <= offered.nodes*(offered.devices/per) &&
			(w.MostNodes == 0 || count <= w.MostNodes) &&
			(w.MostDevices == 0 || count*per <= w.MostDevices) {
			out = append(out, [2]int64{count, per})
		}
	}
	switch {
	case w.PerNode > 0 && w.PerNode > offered.devices:
	case w.PerNode > 0 && w.Nodes > 0:
		add(w.Nodes, w.PerNode)
	case w.PerNode > 0:
		for count := int64(1); count <= offered.nodes*(offered.devices/w.PerNode); count++ {
			add(count, w.PerNode)
		}
	default:
		for per := int64(1); per <= offered.devices; per++ {
			if offered.devices%per == 0 {
				add(max(1, w.Nodes), per)
			}
		}
		for count := int64(2); w.Nodes == 0 && count <= offered.nodes; count++ {
			add(count, offered.devices)
		}
	}
	return out
}

// usable returns the part of a device's memory that a training may fill, in bytes.
func usable(memory int64) int64 { return memory / 100 * (100 - headroom) }

// lacks returns the bytes that a device has too few; 0 or less for one that has enough.
func (c candidate) lacks() int64 { return c.estimate.Bytes - usable(c.memory) }

// before reports whether c is better than other.
func (c candidate) before(other candidate) bool {
	switch {
	case c.inDomain != other.inDomain:
		return c.inDomain
	case c.devices() != other.devices():
		return c.devices() < other.devices()
	case c.count != other.count:
		return c.count < other.count
	case c.memory != other.memory:
		return c.memory < other.memory
	default: // equal ones stay in the order of kinds
		return c.nodes > other.nodes
	}
}

// choice returns the candidate as the choice. all are the kinds of the whole fleet: a node that is closed now may be
// open when the pods are made.
func (c candidate) choice(work Work, all []offer) Choice {
	out := Choice{Resource: c.resource, Nodes: c.count, PerNode: c.per, Words: c.words(work)}
	for _, other := range all {
		same := other.pinKey == c.pinKey && other.pinValue == c.pinValue && c.pinKey != ""
		if other.resource == c.resource && other.devices >= c.per && usable(other.memory) < c.estimate.Bytes && !same {
			out.PinKey, out.PinValue = c.pinKey, c.pinValue
			out.Words += fmt.Sprintf(
				"; only nodes with %s=%s, because other nodes have smaller ones",
				c.pinKey,
				c.pinValue,
			)
			break
		}
	}
	return out
}

// nothing returns the reason why no node is usable.
func nothing(work Work, nodes, open []Node) string {
	sized := 0
	for _, node := range open {
		if node.Memory > 0 {
			sized++
		}
	}
	switch {
	case len(nodes) == 0:
		return "no node of this cluster offers GPUs"
	case len(open) == 0 && work.Resource != "":
		return fmt.Sprintf(
			"no node with %s is open to the job's pods, by their node selectors, affinities and tolerations",
			work.Resource,
		)
	case len(open) == 0:
		return fmt.Sprintf(
			"none of %d nodes with GPUs is open to the job's pods, by their node selectors, affinities and tolerations",
			len(nodes),
		)
	case sized == 0:
		return fmt.Sprintf(
			"%d nodes offer %s and do not say how much memory each GPU has; run NVIDIA's GPU feature discovery, or label them "+
				"nvidia.com/gpu.memory (in MiB)",
			len(open),
			strings.Join(resources(open), ", "),
		)
	case work.PerNode > 0:
		return fmt.Sprintf("no node has %d GPUs, one for each process of numProcPerNode", work.PerNode)
	case work.LeastDevices > 1 && work.Nodes == 0:
		return fmt.Sprintf("no node has %d GPUs, the least for %s", work.LeastDevices, work.About)
	default:
		return fmt.Sprintf("%d nodes with GPUs are too few for numNodes %d", len(open), work.Nodes)
	}
}
