package snapshot

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/topology"
)

// closed returns by tree number the mark that closes a node; nil where a node is open, and if all are. Maintenance
// closes the domain of the level that is its value; a level that the fleet does not have closes the node.
func (v View) closed() []*nodehealth.Mark {
	var out []*nodehealth.Mark
	for i, mark := range v.marks {
		if mark == nil {
			continue
		}
		if out == nil {
			out = make([]*nodehealth.Mark, len(v.Infos))
		}
		if out[i] == nil {
			out[i] = mark
		}
		if mark.Key != topology.KeyMaintenance {
			continue
		}
		if level, ok := v.Tree.Level(mark.Value); ok {
			for _, other := range v.Tree.Together(i, level) {
				out[other] = mark
			}
		}
	}
	return out
}

// ClosedTo returns the nodes that are closed to the pod, with the rule of each; nil for none.
func (v View) ClosedTo(pod *corev1.Pod) map[string]string {
	var rules map[string]string
	for i, mark := range v.closed() {
		if mark != nil && v.Infos[i] != nil && !mark.Tolerated(pod) {
			if rules == nil {
				rules = make(map[string]string)
			}
			rules[v.Infos[i].Node().Name] = mark.Rule()
		}
	}
	return rules
}
