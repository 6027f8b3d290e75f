package gangplacement

import (
	"hash/fnv"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
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
func (m *memory) takeRefusals(q question, now time.Time) (barred map[string]string, failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.refused[q.key.String()]
	if known == nil || known.gang != q.group.UID {
		return m.barOthers(nil, q, now), false
	}
	book := known.of(q.fleet)
	failed = book.learn()
	if len(book.nodes) == 0 {
		return m.barOthers(nil, q, now), failed
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
	return m.barOthers(barred, q, now), failed
}

// barOthers adds the nodes that are barred for what happened to pods there.
func (m *memory) barOthers(barred map[string]string, q question, now time.Time) map[string]string {
	barred = m.barStruck(m.barSuspects(barred, q.parent.Nodes, now), q)
	return m.barUnwanted(q.group.UID, barred, now)
}

// remember keeps the plan until the gang's next attempt.
func (m *memory) remember(q question, plan *plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.refused[q.key.String()]
	if known == nil || known.gang != q.group.UID {
		known = &refusals{gang: q.group.UID}
		m.refused[q.key.String()] = known
	}
	known.of(q.fleet).last = plan
	if node := m.strikes.Avoids(
		q.group.UID,
	); node != "" && !plan.uses(node) && q.fleet == asItIs &&
		len(q.running) == 0 {
		m.strikes.Started(q.group.UID, q.began)
	}
}

// count is how many nodes there were when a gang was asked about first.
type count struct {
	gang  types.UID
	nodes int
}

// nodesAtFirst is the number of nodes in the text of a rejection. The framework writes the text into the status of each member, and of the
// PodGroup, whenever it changes: with the number of the moment, every node that comes or goes would cost a write for each waiting pod.
func (m *memory) nodesAtFirst(q question) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.counted[q.key]
	if !ok || known.gang != q.group.UID {
		known = count{q.group.UID, len(q.parent.Nodes)}
		m.counted[q.key] = known
	}
	return known.nodes
}

// drop forgets what refused on a fleet that has no other nodes left: it may be possible by the next attempt.
func (m *memory) drop(q question) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.refused[q.key.String()]; known != nil {
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
	p.queue.Forget(waiting.IDOf(name))
	if p.memory.forgetGroup(name, group.UID, p.clock.Now()) {
		p.queue.Again() // what its victims left is free for others
	}
}

// forgetGroup drops what is known about a deleted group. It reports whether the group waited for victims.
func (m *memory) forgetGroup(name types.NamespacedName, uid types.UID, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.counted, name)
	delete(m.unwanted, uid)
	m.strikes.Forget(uid, now)
	preempts := m.preempting[name] != nil
	delete(m.preempting, name)
	if known := m.refused[name.String()]; known != nil && known.gang == uid {
		delete(m.refused, name.String())
	}
	return preempts
}

// forget drops what is known about a gang that is placed.
func (m *memory) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.refused, key)
}
