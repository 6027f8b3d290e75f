package dialects

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/topology"
)

// Group describes a gang, as its PodGroup must.
type Group struct {
	// Minimum counts the members that start together, at least 1.
	Minimum int
	// Wishes are annotations that say where the gang wants to be, by the keys that the scheduler reads.
	Wishes map[string]string
}

// maxMembers is more than any gang has, and fits into the field of a PodGroup.
const maxMembers = 1 << 24

// Wishes returns the keys that Group.Wishes may have: the annotations that users may write about their own gangs. All others of lockstep.dev are facts
// that Lockstep's controllers state.
func Wishes() []string {
	return []string{
		topology.AnnotationRequiredTopology, topology.AnnotationPreferredTopology,
		topology.AnnotationSegmentSize, topology.AnnotationSegmentTopology, topology.AnnotationSegmentEqual,
		topology.AnnotationSpreadTopology, topology.AnnotationSpreadMax, topology.AnnotationSpares,
		topology.AnnotationMaxPerNode, topology.AnnotationTorusBox, topology.AnnotationCommunication,
		topology.AnnotationSweepParallelism,
		"kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology",
		"kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-slice-size",
	}
}

// Describe returns the group of a marked pod. object is the content of the mark's source, nil for a mark without one. Wishes of the object win
// over those of the pod.
func (m Mark) Describe(pod *corev1.Pod, object map[string]any) (Group, error) {
	minimum, err := m.Dialect.Minimum(pod, object)
	if err != nil {
		return Group{}, err
	}
	if minimum < 1 || minimum > maxMembers {
		return Group{}, fmt.Errorf("its size is %d, and must be between 1 and %d: %w", minimum, maxMembers, ErrNoSize)
	}
	asked := map[string]string{}
	if m.Dialect.Wishes != nil {
		maps.Copy(asked, m.Dialect.Wishes(pod, object))
	}
	of, _, _ := unstructured.NestedStringMap(object, "metadata", "annotations")
	for _, annotations := range []map[string]string{pod.Annotations, of} {
		for _, key := range Wishes() {
			if value, has := annotations[key]; has {
				asked[key] = value
			}
		}
	}
	return Group{Minimum: minimum, Wishes: asked}, nil
}
