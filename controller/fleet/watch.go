package fleet

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/lockstep-project/lockstep/controller/sizing"
)

// Watch updates the fleet from the events of an informer of nodes. It is safe for concurrent use.
type Watch struct {
	synced func() bool

	mu    sync.Mutex
	nodes map[string]sizing.Node
	// value is the fleet of nodes; nil since they changed.
	value []sizing.Node
}

// Handles registers events with an informer, which reports when it has listed all nodes.
type Handles interface {
	AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
}

// NewWatch returns a fleet that follows the events of informer. The error is the informer's.
func NewWatch(informer Handles) (*Watch, error) {
	w := &Watch{nodes: map[string]sizing.Node{}}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    w.keep,
		UpdateFunc: func(_, next any) { w.keep(next) },
		DeleteFunc: w.drop,
	})
	if err != nil {
		return nil, err
	}
	w.synced = registration.HasSynced
	return w, nil
}

// Fleet returns the present GPUs of the nodes. It reads only memory.
func (w *Watch) Fleet() sizing.Fleet {
	known := w.synced()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.value == nil {
		w.value = slices.SortedFunc(
			maps.Values(w.nodes),
			func(a, b sizing.Node) int { return strings.Compare(a.Name, b.Name) },
		)
	}
	return sizing.Fleet{Nodes: w.value, Known: known}
}

func (w *Watch) keep(object any) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	offered, has := Of(node)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.value = nil
	if has {
		w.nodes[node.Name] = offered
	} else {
		delete(w.nodes, node.Name)
	}
}

func (w *Watch) drop(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	node, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.value = nil
	delete(w.nodes, node.Name)
}
