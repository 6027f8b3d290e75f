package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/dialects"
)

// Mark describes how the pods of a gang name it.
type Mark struct {
	// Dialect is that of the mark that counts; "native" if the pods name their PodGroup themselves.
	Dialect string `json:"dialect"`
	// Key is its place on pods: "label KEY", "annotation KEY" or a field.
	Key string `json:"key"`
	// Group is the gang's name there.
	Group string `json:"group"`
	// Ignored are marks of the same pod that do not count.
	Ignored []Mark `json:"ignored,omitempty"`
}

// native is the dialect of pods that name their PodGroup themselves.
const native = "native"

// MarkOf returns the mark by which a gang's pod was read, and the marks that do not count beside it; nil for a pod that
// names its PodGroup itself and has no mark of another controller, and for one whose mark is not known, as in
// anonymized snapshots.
func MarkOf(reader *dialects.Reader, group *schedulingv1beta1.PodGroup, pod *corev1.Pod) *Mark {
	all := reader.All(pod)
	counts, foreign := group.Annotations[dialects.AnnotationDialect]
	if !foreign {
		all = slices.DeleteFunc(all, func(mark dialects.Mark) bool { return mark.PodGroup == group.Name })
		if len(all) == 0 {
			return nil
		}
		out := &Mark{Dialect: native, Key: "spec.schedulingGroup", Group: group.Name}
		if pod.Labels[gangapi.Label] == group.Name {
			out.Key = "label " + gangapi.Label
		}
		out.Ignored = marksOf(all)
		return out
	}
	at := slices.IndexFunc(all, func(mark dialects.Mark) bool { return mark.Dialect.Name == counts })
	if at < 0 {
		return nil
	}
	out := marksOf(all[at : at+1])[0]
	out.Ignored = marksOf(slices.Delete(all, at, at+1))
	return &out
}

func marksOf(all []dialects.Mark) []Mark {
	var out []Mark
	for _, mark := range all {
		out = append(out, Mark{Dialect: mark.Dialect.Name, Key: mark.Key, Group: mark.Group})
	}
	return out
}

// mark names the mark of a gang's pods that was read.
func (t *text) mark(m Mark) {
	if m.Dialect == native {
		t.line(1, "its pods name it themselves: %s", m.Key)
	} else {
		t.line(1, "its pods are marked by %s: %s, group %s", m.Dialect, m.Key, m.Group)
	}
	if len(m.Ignored) == 0 {
		return
	}
	var also []string
	for _, other := range m.Ignored {
		also = append(also, fmt.Sprintf("%s (%s, group %s)", other.Dialect, other.Key, other.Group))
	}
	t.line(1, "marks that do not count beside it: %s", strings.Join(also, ", "))
}
