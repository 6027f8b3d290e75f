package schedulertest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/topology"
)

// GPU is the accelerator of the nodes.
const GPU = corev1.ResourceName("nvidia.com/gpu")

// Cliques returns cliques of size nodes with four GPUs each, shuffled. Two cliques share a rack.
func Cliques(cliques, size int) []*corev1.Node {
	var nodes []*corev1.Node
	for c := range cliques {
		for n := range size {
			name := NodeName(c, n)
			has := corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
				corev1.ResourcePods: resource.MustParse("110"), GPU: resource.MustParse("4"),
			}
			nodes = append(nodes, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", Labels: map[string]string{
					corev1.LabelHostname: name,
					topology.LabelClique: fmt.Sprint("fabric.", c),
					"example.com/rack":   fmt.Sprint("r", c/2),
				}},
				Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
			})
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// NodeName returns the name of a node of Cliques, such as c0-n3.
func NodeName(clique, node int) string { return fmt.Sprintf("c%d-n%d", clique, node) }

// CliqueNodes returns the names of the first n nodes of a clique.
func CliqueNodes(clique, n int) []string {
	nodes := make([]string, n)
	for i := range nodes {
		nodes[i] = NodeName(clique, i)
	}
	return nodes
}

// FindNode returns the node with a name.
func FindNode(nodes []*corev1.Node, name string) *corev1.Node {
	return nodes[slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })]
}
