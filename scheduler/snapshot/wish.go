package snapshot

import (
	"cmp"
	"fmt"
	"strconv"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/grid"
)

// Kueue's spellings of the same wishes.
const (
	annotationKueueRequired   = "kueue.x-k8s.io/podset-required-topology"
	annotationKueuePreferred  = "kueue.x-k8s.io/podset-preferred-topology"
	annotationKueueSliceLevel = "kueue.x-k8s.io/podset-slice-required-topology"
	annotationKueueSliceSize  = "kueue.x-k8s.io/podset-slice-size"
)

// Required returns the level that confines the PodGroup to one of its domains, "" for none. The annotation decides: an
// API server whose gate is off drops the native field.
func Required(group *schedulingv1beta1.PodGroup) string {
	if level := cmp.Or(group.Annotations[topology.AnnotationRequiredTopology],
		group.Annotations[annotationKueueRequired]); level != "" {
		return level
	}
	if c := group.Spec.SchedulingConstraints; c != nil && len(c.Topology) > 0 {
		return c.Topology[0].Key
	}
	return ""
}

// wishes reads the wishes of the PodGroup into the gang. An error names the annotation that cannot be read, and its
// value. Levels are only named: the decision reports whether the fleet has them.
func (v View) wishes(group *schedulingv1beta1.PodGroup, gang *topology.Gang) error {
	w := reader{annotations: group.Annotations}
	gang.Required = Required(group)
	gang.Preferred = w.word(topology.AnnotationPreferredTopology, annotationKueuePreferred)
	gang.Segment = topology.Segment{
		Size:  w.number(topology.AnnotationSegmentSize),
		Level: w.word(topology.AnnotationSegmentTopology, ""),
		Equal: w.flag(topology.AnnotationSegmentEqual),
	}
	if gang.Segment.Size == 0 { // a slice of Kueue's is never short
		size := w.number(annotationKueueSliceSize)
		gang.Segment = topology.Segment{Size: size, Level: w.word(annotationKueueSliceLevel, ""), Equal: size > 0}
	}
	gang.Spread = topology.Spread{
		Max: w.number(topology.AnnotationSpreadMax), Level: w.word(topology.AnnotationSpreadTopology, ""),
	}
	gang.PerNode = w.number(topology.AnnotationMaxPerNode)
	gang.Box = w.box(topology.AnnotationTorusBox)
	gang.Spares = topology.Spares{Nodes: w.number(topology.AnnotationSpares)}
	gang.Spares.Level = cmp.Or(gang.Segment.Level, gang.Required, gang.Preferred, v.innermost())
	pattern := group.Annotations[topology.AnnotationCommunication]
	communication, ok := topology.ParseCommunication(pattern)
	if !ok {
		w.fail(topology.AnnotationCommunication, pattern, "ring, chain or all-to-all")
	}
	gang.Communication = communication
	return w.err
}

// innermost is the name of the fleet's innermost level, "" if nodes carry no topology label.
func (v View) innermost() string {
	levels := v.Tree.Levels()
	if len(levels) == 0 {
		return ""
	}
	return levels[len(levels)-1].Name
}

// reader reads annotations and records the first mistake.
type reader struct {
	annotations map[string]string
	err         error
}

func (r *reader) fail(key, value, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("annotation %s is %q; it must be %s", key, value, want)
	}
}

// word reads a level from the key or, if that is not there, the other.
func (r *reader) word(key, other string) string {
	return cmp.Or(r.annotations[key], r.annotations[other])
}

// mostNumber is more than any gang has members, and products of two such numbers fit in 64 bits.
const mostNumber = 1 << 24

// number reads a positive number, 0 if the annotation is not there. Spares may be 0.
func (r *reader) number(key string) int {
	value, ok := r.annotations[key]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > mostNumber || n == 0 && key != topology.AnnotationSpares {
		r.fail(key, value, "a positive number, at most 16777216")
		return 0
	}
	return n
}

// box reads a shape, the zero Size if the annotation is not there.
func (r *reader) box(key string) grid.Size {
	value, ok := r.annotations[key]
	if !ok {
		return grid.Size{}
	}
	size, err := grid.ParseSize(value)
	if err != nil {
		r.fail(key, value, "two or three numbers joined by x, such as 2x4x4")
	}
	return size
}

func (r *reader) flag(key string) bool {
	value, ok := r.annotations[key]
	if !ok {
		return false
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		r.fail(key, value, "true or false")
	}
	return b
}
