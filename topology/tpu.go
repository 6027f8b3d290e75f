package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/topology/grid"
)

// The node labels of TPUs on GKE. A node pool of several hosts with a topology is one slice. Dynamic slices label the
// nodes of each partition of a cube with its id and its state, and parts of a two-dimensional pod have an id per shape.
const (
	LabelTPUTopology    = "cloud.google.com/gke-tpu-topology"
	LabelTPUAccelerator = "cloud.google.com/gke-tpu-accelerator"
	labelChipsPerHost   = "cloud.google.com/gke-accelerator-count"
	keyNodePool         = "cloud.google.com/gke-nodepool"

	partitionPrefix  = "cloud.google.com/gke-tpu-partition-"
	subSlicePrefix   = "cloud.google.com/gke-tpu-slice-"
	partitionID      = "-id"
	partitionState   = "-state"
	partitionHealthy = "HEALTHY"
)

// AnnotationTPUTopology is GKE's annotation of pods that asks for a dynamic slice, or part of a pod of two dimensions,
// of a shape. Pods without ask for a static one by the node selector LabelTPUTopology.
const AnnotationTPUTopology = "cloud.google.com/gke-tpu-slice-topology"

// cubeEdge is the number of chips along each edge of a cube, the largest partition.
const cubeEdge = 4

// TPUShape is the shape of a TPU slice in chips, of two or three dimensions.
type TPUShape struct {
	size grid.Size
	flat bool
}

// ParseTPUShape reads a shape as GKE writes it: 4x4x8, or 2x4 in two dimensions.
func ParseTPUShape(text string) (TPUShape, error) {
	size, err := grid.ParseSize(text)
	return TPUShape{size, strings.Count(text, "x") == 1}, err
}

// String returns the shape as GKE writes it.
func (s TPUShape) String() string {
	if s.flat {
		return fmt.Sprintf("%dx%d", s.size[0], s.size[1])
	}
	return s.size.String()
}

// Chips returns the number of chips.
func (s TPUShape) Chips() int { return s.size.Cells() }

// Units returns the level whose domains a dynamic slice of the shape consists of, and their number: one partition, one
// part of a two-dimensional pod, or several cubes, which optical switches join wherever they are. It reports false for
// a shape that no such domains make. Of several cubes, extents do not fall, and each is a multiple of 4.
//
// Source: Google's documentation of dynamic slicing (TPU7x) and of sub-slicing (v6e).
func (s TPUShape) Units() (key string, count int, ok bool) {
	prefix := partitionPrefix
	if s.flat {
		prefix = subSlicePrefix
	}
	key = prefix + s.String() + partitionID
	if slices.ContainsFunc(acceleratorRungs(), func(r rung) bool { return r.Key == key }) {
		return key, 1, true
	}
	if s.flat || !slices.IsSorted(s.size[:]) {
		return "", 0, false
	}
	count = 1
	for _, n := range s.size {
		if n%cubeEdge != 0 {
			return "", 0, false
		}
		count *= n / cubeEdge
	}
	cube := grid.Size{cubeEdge, cubeEdge, cubeEdge}
	return partitionPrefix + cube.String() + partitionID, count, true
}

// StaticTPULevel is the key of the level of slices that are a node pool each.
const StaticTPULevel = keyNodePool

// Value returns the domain of the level that a node's labels name; "" if they name none, or a TPU partition with a
// state label other than HEALTHY. The smaller partitions inside have states of their own and stay usable: a cube that
// cannot be a 4x4x4 slice may hold a 2x2x2.
func (l Level) Value(labels map[string]string) string {
	value := labels[l.Key]
	if value == "" || l.TPUSlices && !isStaticSlice(labels) {
		return ""
	}
	if key, ok := l.stateKey(); ok {
		if state := labels[key]; state != "" && state != partitionHealthy {
			return ""
		}
	}
	return value
}

// mostChipsPerHost is the number of chips of the largest TPU machine types, for a node without a label for its own.
const mostChipsPerHost = 8

// keyCube is the label of nodes of dynamic slices.
const keyCube = partitionPrefix + "4x4x4" + partitionID

// isStaticSlice reports whether a node is one of several in a pool that is one slice. Chips of two hosts in pools of
// single hosts are not connected, and those of dynamic slices only when a slice is made of them.
func isStaticSlice(labels map[string]string) bool {
	if labels[keyCube] != "" {
		return false
	}
	shape, err := ParseTPUShape(labels[LabelTPUTopology])
	if err != nil {
		return false
	}
	perHost, err := strconv.Atoi(labels[labelChipsPerHost])
	if err != nil {
		perHost = mostChipsPerHost
	}
	return shape.Chips() > perHost
}

// Keys returns the keys of all labels that name a node's domain of the level, and its place in it.
func (l Level) Keys() []string {
	keys := []string{l.Key}
	if key, ok := l.stateKey(); ok {
		keys = append(keys, key)
	}
	if l.TPUSlices {
		keys = append(keys, LabelTPUTopology, labelChipsPerHost, keyCube)
	}
	if l.Key == LabelTorus {
		keys = append(keys, LabelTorusShape, LabelTorusRings, LabelTorusAt)
	}
	return keys
}

// stateKey returns the key of the label with the state of the level's domains. It reports false if the level has none.
func (l Level) stateKey() (string, bool) {
	if !strings.HasPrefix(l.Key, partitionPrefix) {
		return "", false
	}
	shape, ok := strings.CutSuffix(l.Key, partitionID)
	return shape + partitionState, ok
}

// absence explains, for people, why a node is outside every domain of the level.
func (l Level) absence() string {
	if _, ok := l.stateKey(); ok {
		return "no label, or the partition is not " + partitionHealthy
	}
	if l.TPUSlices {
		return "no TPU slice of several hosts"
	}
	return "no label"
}
