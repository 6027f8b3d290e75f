package gangplacement

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// nodeVersions detects snapshots that lag behind the node informer: events of nodes that the scheduler's own handlers
// have not seen yet.
type nodeVersions struct {
	// mu guards unseen: event handlers add and delete versions, and the scheduling loop drops those that its snapshot
	// shows.
	mu sync.Mutex
	// unseen maps each node that changed to its resource version, until a snapshot shows it.
	unseen map[string]string
}

func newNodeVersions() *nodeVersions { return &nodeVersions{unseen: make(map[string]string)} }

// nodeChanged notes the version of a node that was added or updated.
func (v *nodeVersions) nodeChanged(node *corev1.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unseen[node.Name] = node.ResourceVersion
}

// nodeDeleted forgets the version of a deleted node.
func (v *nodeVersions) nodeDeleted(node string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.unseen, node)
}

// lags reports whether some node of the snapshot has another version than the informer reported last.
func (v *nodeVersions) lags(view snapshot.View) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.unseen, func(node, version string) bool {
		at, ok := view.Tree.Index(node)
		return ok && view.Infos[at].Node().ResourceVersion == version
	})
	return len(v.unseen) > 0
}
