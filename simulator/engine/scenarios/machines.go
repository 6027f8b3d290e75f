package scenarios

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
)

// Levels of machines, and the labels that they are made of.
const (
	levelRack   = "tier-0"
	levelClique = "clique"
	labelRack   = "fabric.topograph.run/tier-0"
	labelClique = "nvidia.com/gpu.clique"
)

// gpus is the number of accelerators of a machine.
const gpus = 8

// machines is a fleet of equal racks with equal machines. Each rack is one NVLink clique too.
func machines(racks, each int) fleet.Fleet {
	f := fleet.Fleet{Name: fmt.Sprintf("%dx%d", racks, each)}
	for rack := range racks {
		for n := range each {
			has := corev1.ResourceList{
				corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("96"),
				corev1.ResourceMemory: resource.MustParse("1Ti"),
				"nvidia.com/gpu":      *resource.NewQuantity(gpus, resource.DecimalSI),
			}
			name := node(rack, n)
			f.Nodes = append(f.Nodes, corev1.Node{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
					corev1.LabelHostname: name,
					labelRack:            fmt.Sprintf("rack-%d", rack),
					labelClique:          fmt.Sprintf("fabric-%d.1", rack),
				}},
				Status: corev1.NodeStatus{
					Capacity: has, Allocatable: has.DeepCopy(),
					Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				},
			})
		}
	}
	return f
}

// node is the name of a machine.
func node(rack, n int) string { return fmt.Sprintf("rack-%d-node-%d", rack, n) }
