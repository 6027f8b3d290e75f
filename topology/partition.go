package topology

import "strings"

// GKE's dynamic slices label the nodes of each partition with its id and its state.
const (
	partitionPrefix  = "cloud.google.com/gke-tpu-partition-"
	partitionID      = "-id"
	partitionState   = "-state"
	partitionHealthy = "HEALTHY"
)

// Value returns the domain of the level that a node's labels name; "" if they name none, or a TPU partition whose state
// label says anything but HEALTHY. The smaller partitions inside have states of their own and stay usable: a cube that
// cannot be a 4x4x4 slice may hold a 2x2x2.
func (l Level) Value(labels map[string]string) string {
	value := labels[l.Key]
	if value == "" {
		return ""
	}
	if key, ok := l.StateKey(); ok {
		if state := labels[key]; state != "" && state != partitionHealthy {
			return ""
		}
	}
	return value
}

// StateKey returns the key of the label with the state of the level's domains, which Value reads too. It reports false if
// the level has none.
func (l Level) StateKey() (string, bool) {
	if !strings.HasPrefix(l.Key, partitionPrefix) {
		return "", false
	}
	shape, ok := strings.CutSuffix(l.Key, partitionID)
	return shape + partitionState, ok
}

// absence explains, for people, why a node is outside every domain of the level.
func (l Level) absence() string {
	if _, ok := l.StateKey(); ok {
		return "no label, or the partition is not " + partitionHealthy
	}
	return "no label"
}
