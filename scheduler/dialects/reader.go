package dialects

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Reader reads the marks of the pods of some schedulers: a mark means nothing on pods of others.
type Reader struct {
	table Table
	// schedulers are the names that pods give.
	schedulers []string
}

// NewReader returns a reader of a table for the pods of schedulers of these names.
func NewReader(table Table, schedulers []string) *Reader {
	return &Reader{table, slices.Clone(schedulers)}
}

// Read returns the mark of a pod; false for a pod without one, or of another scheduler.
func (r *Reader) Read(pod *corev1.Pod) (Mark, bool) {
	if !slices.Contains(r.schedulers, pod.Spec.SchedulerName) {
		return Mark{}, false
	}
	return r.table.Read(pod)
}

// PodGroup returns the name of the PodGroup that stands for a pod's mark; empty for none.
func (r *Reader) PodGroup(pod *corev1.Pod) string {
	mark, _ := r.Read(pod)
	return mark.PodGroup
}

// RankOf returns a pod's place in its gang by the first mark that has one; false for a pod without. Pods of Jobs and JobSets have theirs from these.
func RankOf(pod *corev1.Pod) (int, bool) {
	for _, dialect := range explicit() {
		if dialect.Rank != nil && dialect.Group(pod) != "" {
			return dialect.Rank(pod)
		}
	}
	return 0, false
}

// explicit has the dialects of explicit marks: they are asked about every member of every gang.
var explicit = sync.OnceValue(func() Table { //nolint:gochecknoglobals // made once
	marks, _ := Builtin()
	return marks
})
