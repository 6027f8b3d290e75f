package contention

import (
	"maps"
	"slices"
)

// Starting says that some members of a gang are on their way to their nodes, and that one got further. A gang that
// makes no progress for the patience is evicted, whole: patience is about progress, not about the time since the start.
func (m *Machine) Starting(id ID, now int64) {
	m.advance(now)
	m.starting[id] = now
}

// Complete reports that all needed members of a gang are on their nodes, or that the gang is deleted.
func (m *Machine) Complete(id ID) { delete(m.starting, id) }

// stuck returns the gangs whose start makes no progress, by ID, and forgets them.
func (m *Machine) stuck(now int64) []Action {
	var out []Action
	for _, id := range slices.Sorted(maps.Keys(m.starting)) {
		if now >= m.starting[id]+m.policy.Patience {
			out = append(out, Evicted{id})
			delete(m.starting, id)
		}
	}
	return out
}

// firstStuck returns the first instant at which a start has made no progress for the patience, None if none is under
// way.
func (m *Machine) firstStuck() int64 {
	first := int64(None)
	for _, last := range m.starting {
		first = min(first, last+m.policy.Patience)
	}
	return first
}
