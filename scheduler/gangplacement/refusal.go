package gangplacement

import (
	"hash/fnv"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/metrics"
)

// ruleRefused is the rule that bars a node that the plan chose and the framework's filters rejected.
const ruleRefused = "refused by the scheduler's filters"

// refusals holds one gang's failed plans: those for the present fleet, and those for a fleet without the victims of a
// preemption, where a node looks otherwise.
type refusals struct {
	gang types.UID
	// now and trial are about these two.
	now, trial book
}

// book holds the lessons of failed plans for one kind of fleet.
type book struct {
	// nodes maps a refusing node to its state at that time.
	nodes map[string]uint64
	// last is the last plan, not yet looked at.
	last *plan
}

// of is the book of a fleet.
func (r *refusals) of(f fleet) *book {
	if f == withoutVictims {
		return &r.trial
	}
	return &r.now
}

// learn bars the nodes that refused their pin, and those of the looser placement if not one of them took a member: a
// rule between pods, or a volume, often excludes a whole domain, and one node at each attempt would take all day. It
// reports whether there was a plan to learn from.
func (b *book) learn() bool {
	if b.last == nil {
		return false
	}
	if b.nodes == nil {
		b.nodes = make(map[string]uint64)
	}
	for _, pin := range b.last.pins {
		if pin.tried.Load() && !pin.held.Load() {
			b.nodes[pin.node] = pin.look
			metrics.Refusals.Inc()
		}
	}
	if b.last.asked.Load() && !b.last.useful.Load() {
		maps.Copy(b.nodes, b.last.looks)
	}
	b.last = nil
	return true
}

// look sums up the state of a node and its pods as the filters see it. A generation would not do: trying a gang on a
// node and taking it off again changes that.
func look(info fwk.NodeInfo) uint64 {
	sum := hash(info.Node().ResourceVersion)
	for _, pod := range info.GetPods() {
		sum += hash(string(pod.GetPod().UID))
	}
	return sum
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return h.Sum64()
}

// planHistory remembers the gangs that wait, from one attempt to the next: their failed plans, and the number of nodes
// at the first attempt.
type planHistory struct {
	// mu guards the fields below: the scheduling loop uses them, and the handler of deleted PodGroups deletes entries.
	mu sync.Mutex
	// refused maps a gang to its plans that failed, and to the last one, which may have failed.
	refused map[types.NamespacedName]*refusals
	// counted maps a gang to the number of nodes when it was evaluated first.
	counted map[types.NamespacedName]count
}

// count is the number of nodes when a gang was evaluated first.
type count struct {
	gang  types.UID
	nodes int
}

func newPlanHistory() *planHistory {
	return &planHistory{
		refused: make(map[types.NamespacedName]*refusals), counted: make(map[types.NamespacedName]count),
	}
}

// takeRefusals learns from the gang's last plan for the fleet and returns the nodes to bar: those that refused their
// pin and have not changed since. It reports whether the last plan failed.
func (h *planHistory) takeRefusals(q question) (barred map[string]string, failed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.refused[q.key]
	if known == nil || known.gang != q.group.UID {
		return nil, false
	}
	book := known.of(q.fleet)
	failed = book.learn()
	if len(book.nodes) == 0 {
		return nil, failed
	}
	barred = make(map[string]string, len(book.nodes))
	for _, info := range q.parent.Nodes {
		name := info.Node().Name
		if was, ok := book.nodes[name]; ok && was == look(info) {
			barred[name] = ruleRefused
		}
	}
	for name := range book.nodes {
		if barred[name] == "" {
			delete(book.nodes, name)
		}
	}
	return barred, failed
}

// remember stores the plan until the gang's next attempt.
func (h *planHistory) remember(q question, plan *plan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.refused[q.key]
	if known == nil || known.gang != q.group.UID {
		known = &refusals{gang: q.group.UID}
		h.refused[q.key] = known
	}
	known.of(q.fleet).last = plan
}

// nodesAtFirst is the number of nodes in the text of a rejection. The framework writes the text into the status of each
// member, and of the PodGroup, whenever it changes: with the current number, every node that is added or deleted would
// cost a write for each waiting pod.
func (h *planHistory) nodesAtFirst(q question) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.counted[q.key]
	if !ok || known.gang != q.group.UID {
		known = count{q.group.UID, len(q.parent.Nodes)}
		h.counted[q.key] = known
	}
	return known.nodes
}

// drop forgets the refusals on a fleet that has no other nodes left: a refused place may be possible by the next
// attempt.
func (h *planHistory) drop(q question) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.refused[q.key]; known != nil {
		*known.of(q.fleet) = book{}
	}
}

// groupDeleted drops the state of a deleted group.
func (h *planHistory) groupDeleted(name types.NamespacedName, uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.counted, name)
	if known := h.refused[name]; known != nil && known.gang == uid {
		delete(h.refused, name)
	}
}

// gangPlaced drops the refusals of a gang that is placed.
func (h *planHistory) gangPlaced(gang types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.refused, gang)
}

// hasRefusals reports whether the gang's last attempts have to be learned from: its plan was refused, or may have been.
func (h *planHistory) hasRefusals(gang types.NamespacedName) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.refused[gang]
	return known != nil && (known.now.last != nil || len(known.now.nodes) > 0)
}
