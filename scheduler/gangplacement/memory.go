package gangplacement

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
)

// memory is what the plugin remembers from cycle to cycle, and from events.
type memory struct {
	// found are the label families that were logged last, restored is set once the places of gangs that run already are leased again,
	// last is what the gauges say, coming the plan of the gang that starts next. Only the scheduling loop uses them.
	found    string
	restored bool
	last     reading
	coming   *plan
	// store has what the last scheduler left, nil for none.
	store *Store

	mu      sync.Mutex
	refused map[string]*refusals
	// changed are the versions of nodes that changed, as far as the snapshot did not show them yet.
	changed map[string]string
	// suspects are the nodes whose kubelets refused a pod.
	suspects map[string]suspicion
	// strikes are what happened to pods, by node.
	strikes *nodehealth.Ledger
	// unwanted are the nodes that a gang is to stay off until an instant, by the UID of its group.
	unwanted map[types.UID]map[string]time.Time
	// marked are the nodes that are closed.
	marked marks
	// kinds are the nodes with and without accelerators.
	kinds kinds
	// preempting are the gangs for which in-tree preemption found a way and that were not evaluated since.
	preempting map[types.NamespacedName]*preemption
	// counted is how many nodes there were when each gang was evaluated first.
	counted map[types.NamespacedName]count
	// accelerators are the resources that count as accelerators.
	accelerators []corev1.ResourceName
}

func newMemory(accelerators []corev1.ResourceName, store *Store, limits nodehealth.Limits) *memory {
	return &memory{
		store: store, strikes: nodehealth.NewLedger(limits),
		refused: make(map[string]*refusals), changed: make(map[string]string),
		suspects: make(map[string]suspicion), unwanted: make(map[types.UID]map[string]time.Time),
		marked: make(marks), kinds: newKinds(), preempting: make(map[types.NamespacedName]*preemption),
		counted: make(map[types.NamespacedName]count), accelerators: accelerators,
	}
}
