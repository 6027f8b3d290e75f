package importer

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// viewOf indexes nodes as the scheduler does. The levels are those that labels show, with more outside of them.
func viewOf(nodes []*corev1.Node, resources []corev1.ResourceName, more []topology.Level) (snapshot.View, error) {
	infos := make([]fwk.NodeInfo, len(nodes))
	labeled := make([]topology.Node, len(nodes))
	for i, node := range nodes {
		infos[i], labeled[i] = empty{node: node}, topology.Node{Name: node.Name, Labels: node.Labels}
	}
	var levels []topology.Level // nil is those of the labels
	if len(more) > 0 {
		discovered := topology.Discovered(labeled)
		for i, node := range labeled {
			labeled[i] = topology.WithClique(node, discovered)
		}
		levels = slices.Concat(more, topology.DetectLevels(labeled))
	}
	view, err := snapshot.NewIndex(levels, "", nodehealth.Default()).Update(infos, resources)
	if err != nil {
		return view, fmt.Errorf("indexing the fleet's nodes: %w", err)
	}
	return view, nil
}

// empty is the node info of an empty node, because free resources are counted here. It has the methods that the
// scheduler's index calls.
type empty struct {
	fwk.NodeInfo
	node *corev1.Node
}

// Node returns the node.
func (e empty) Node() *corev1.Node { return e.node }

// GetPods returns none.
func (empty) GetPods() []fwk.PodInfo { return nil }

// GetGeneration is constant, because nodes of a scenario do not change.
func (empty) GetGeneration() int64 { return 1 }

// GetRequested returns zeros.
func (empty) GetRequested() fwk.Resource { return nothing{} }

// GetAllocatable returns zeros, because the builder reads the node itself.
func (empty) GetAllocatable() fwk.Resource { return nothing{} }

// nothing is zero of each resource.
type nothing struct{ fwk.Resource }

// GetMilliCPU is 0.
func (nothing) GetMilliCPU() int64 { return 0 }

// GetMemory is 0.
func (nothing) GetMemory() int64 { return 0 }

// GetEphemeralStorage is 0.
func (nothing) GetEphemeralStorage() int64 { return 0 }

// GetAllowedPodNumber is 0.
func (nothing) GetAllowedPodNumber() int { return 0 }

// GetScalarResources are none.
func (nothing) GetScalarResources() map[corev1.ResourceName]int64 { return nil }
