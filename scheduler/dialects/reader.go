package dialects

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
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

// Membership returns what a pod's mark says, for the clients that decode pods with it.
func (r *Reader) Membership(pod *corev1.Pod) (gangapi.Membership, bool) {
	mark, marked := r.Read(pod)
	if !marked {
		return gangapi.Membership{}, false
	}
	member := gangapi.Membership{Group: mark.PodGroup}
	if mark.Dialect.Rank != nil {
		if rank, has := mark.Dialect.Rank(pod); has {
			member.Rank = &rank
		}
	}
	return member, true
}
