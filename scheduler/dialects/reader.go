package dialects

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// Reader reads the marks of the pods of some schedulers: a mark means nothing on pods of others.
type Reader struct {
	table Table
	// schedulers are the names that pods give, aliases further names, each with the one that it stands for.
	schedulers []string
	aliases    map[string]string
}

// NewReader returns a reader of a table for the pods of schedulers of these names, at least one. aliases has further names, each with the one of them
// that it stands for.
func NewReader(table Table, schedulers []string, aliases map[string]string) *Reader {
	return &Reader{table, slices.Clone(schedulers), maps.Clone(aliases)}
}

// reads reports whether a pod is one of the schedulers'.
func (r *Reader) reads(pod *corev1.Pod) bool {
	_, isAlias := r.aliases[pod.Spec.SchedulerName]
	return isAlias || slices.Contains(r.schedulers, pod.Spec.SchedulerName)
}

// Reading returns the settings with which a client decodes the pods of the schedulers.
func (r *Reader) Reading() gangapi.Reading {
	return gangapi.Reading{Marks: r.Membership, Aliases: r.aliases}
}

// Read returns the mark of a pod; false for a pod without one, or of another scheduler.
func (r *Reader) Read(pod *corev1.Pod) (Mark, bool) {
	if !r.reads(pod) {
		return Mark{}, false
	}
	return r.table.Read(pod)
}

// ByName returns the dialect of a name.
func (r *Reader) ByName(name string) (Dialect, bool) { return r.table.ByName(name) }

// All returns all marks of a pod; the first one counts.
func (r *Reader) All(pod *corev1.Pod) []Mark {
	if !r.reads(pod) {
		return nil
	}
	return r.table.All(pod)
}

// Membership returns the content of a pod's mark, for the clients that decode pods with it.
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
