package movein

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func sortedKeys(fields map[string]any) []string { return slices.Sorted(maps.Keys(fields)) }

// podGroupSize notes whether a dialect reads the size of this PodGroup. instead is a size that the PodGroup states in
// other fields; 0 if it does not.
func (p *page) podGroupSize(dialect string, instead int) {
	where := at("spec", "minMember")
	of, _ := p.run.table.ByName(dialect)
	p.number(where, 0)
	size, err := of.Minimum(&corev1.Pod{}, p.object)
	if p.err != nil {
		return
	}
	defer p.needs(where, dialect)
	switch {
	case err == nil:
		p.note(stays, where, "dialect %s reads a gang of at least %s", dialect, count(size, "pod"))
	case instead > 0:
		p.note(
			todo,
			where,
			"dialect %s reads no other size; write minMember: %d, the sum of its subgroups",
			dialect,
			instead,
		)
	default:
		p.note(todo, where, "dialect %s reads no size: %s", dialect, oneLine(err))
	}
}

// podGroupQueue reports on the queue of a PodGroup.
func (p *page) podGroupQueue(where path) {
	if p.text(where) != "" {
		p.note(
			unread,
			where,
			"Lockstep has no queues; for Kueue, label the object that creates the pods %s",
			kueueLabel,
		)
	}
}

// podGroupPriority reports on the priority of a PodGroup.
func (p *page) podGroupPriority(where path) {
	if class := p.text(where); class != "" {
		p.note(unread, where, "a gang has the priority of its pods; write priorityClassName: %s there", class)
	}
}
