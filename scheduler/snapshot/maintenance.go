package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/topology"
)

// Maintenance is the mark that closes a node, or the whole domain around it, to what is to come; what runs stays. It is an
// annotation or a taint (NoSchedule, NoExecute) of the node, whose value is the level of the domain: its name or its label key,
// or nothing for the node alone. A level that the fleet does not have closes the node.
func Maintenance(node *corev1.Node) (level string, marked bool) {
	if level, marked = node.Annotations[topology.KeyMaintenance]; marked {
		return level, true
	}
	at := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == topology.KeyMaintenance && hard(&t)
	})
	if at < 0 {
		return "", false
	}
	return node.Spec.Taints[at].Value, true
}

// SameMaintenance reports whether two versions of a node carry the same mark, or none.
func SameMaintenance(a, b *corev1.Node) bool {
	was, marked := Maintenance(a)
	is, still := Maintenance(b)
	return was == is && marked == still
}

// closed says by tree number which nodes are under maintenance, as the taint that they are treated as if they carried; nil
// where a node is open, and if all are.
func (v View) closed() []*corev1.Taint {
	var out []*corev1.Taint
	for i, info := range v.Infos {
		if info == nil {
			continue
		}
		value, marked := Maintenance(info.Node())
		if !marked {
			continue
		}
		if out == nil {
			out = make([]*corev1.Taint, len(v.Infos))
		}
		taint := &corev1.Taint{Key: topology.KeyMaintenance, Value: value, Effect: corev1.TaintEffectNoSchedule}
		out[i] = taint
		if level, ok := v.Tree.Level(value); ok {
			for _, other := range v.Tree.Together(i, level) {
				out[other] = taint
			}
		}
	}
	return out
}

// ClosedTo are the names of the nodes that maintenance keeps the pod from; nil for none.
func (v View) ClosedTo(pod *corev1.Pod) sets.Set[string] {
	var names sets.Set[string]
	for i, taint := range v.closed() {
		if taint != nil && v.Infos[i] != nil && !tolerates(pod, taint) {
			if names == nil {
				names = sets.New[string]()
			}
			names.Insert(v.Infos[i].Node().Name)
		}
	}
	return names
}

func tolerates(pod *corev1.Pod, taint *corev1.Taint) bool {
	return corev1helpers.TolerationsTolerateTaint(klog.Logger{}, pod.Spec.Tolerations, taint, true)
}
