package gangplacement

import (
	"maps"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// lags reports whether the snapshot has nodes that we know otherwise.
func (m *memory) lags(view snapshot.View) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.changed, func(node, version string) bool {
		at, ok := view.Tree.Index(node)
		return ok && view.Infos[at].Node().ResourceVersion == version
	})
	return len(m.changed) > 0
}
