package gangplacement

import (
	"hash/fnv"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// ruleRefused is why a node is barred that the plan chose and the framework's filters rejected.
const ruleRefused = "refused by the scheduler's filters"

// refusals is what is known about one gang's failed plans: those for the fleet as it is, and those for a fleet without the
// victims of a preemption, where a node looks otherwise.
type refusals struct {
	gang types.UID
	// now and trial are about these two.
	now, trial book
}

// book is what failed plans for one kind of fleet taught.
type book struct {
	// nodes maps a refusing node to what it was like then.
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

// learn bars the nodes that refused their pin, and those of the looser placement if not one of them took a member: a rule
// between pods, or a volume, often excludes a whole domain, and one node at each attempt would take all day. It reports
// whether there was a plan to learn from.
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

// look sums up what the filters see of a node and its pods. A generation would not do: trying a gang on a node and
// taking it off again changes that.
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

// takeRefusals learns from the gang's last plan for the fleet and returns the nodes to bar: those that refused, or whose
// kubelets refused a pod, and are as they were then. It reports whether the last plan came to nothing.
func (p *GangPlacement) takeRefusals(q question) (barred map[string]string, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.refused[q.key.String()]
	if known == nil || known.gang != q.group.UID {
		return p.barSuspects(nil, q.parent.Nodes), false
	}
	book := known.of(q.fleet)
	failed = book.learn()
	if len(book.nodes) == 0 {
		return p.barSuspects(nil, q.parent.Nodes), failed
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
	return p.barSuspects(barred, q.parent.Nodes), failed
}

// remember keeps the plan until the gang's next attempt.
func (p *GangPlacement) remember(q question, plan *plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.refused[q.key.String()]
	if known == nil || known.gang != q.group.UID {
		known = &refusals{gang: q.group.UID}
		p.refused[q.key.String()] = known
	}
	known.of(q.fleet).last = plan
}

// count is how many nodes there were when a gang was asked about first.
type count struct {
	gang  types.UID
	nodes int
}

// nodesAtFirst is the number of nodes in the text of a rejection. The framework writes the text into the status of each member, and of the
// PodGroup, whenever it changes: with the number of the moment, every node that comes or goes would cost a write for each waiting pod.
func (p *GangPlacement) nodesAtFirst(q question) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.counted[q.key]
	if !ok || known.gang != q.group.UID {
		known = count{q.group.UID, len(q.parent.Nodes)}
		p.counted[q.key] = known
	}
	return known.nodes
}

// drop forgets what refused on a fleet that has no other nodes left: it may be possible by the next attempt.
func (p *GangPlacement) drop(q question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.refused[q.key.String()]; known != nil {
		*known.of(q.fleet) = book{}
	}
}

// forgetGone forgets a deleted group, but not one of the same name that came after it.
func (p *GangPlacement) forgetGone(obj any) {
	group, ok := snapshot.Deleted(obj)
	if !ok {
		return
	}
	p.explain.Forget(group.UID)
	name := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	key := name.String()
	p.slots.Release(name)
	p.book.Drop(group.UID)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.coming, name)
	delete(p.counted, name)
	if p.preempting[name] != nil {
		delete(p.preempting, name)
		p.lot.Change() // what its victims left is free for others
	}
	if known := p.refused[key]; known != nil && known.gang == group.UID {
		delete(p.refused, key)
	}
}

// forget drops what is known about a gang that is placed.
func (p *GangPlacement) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.refused, key)
}
