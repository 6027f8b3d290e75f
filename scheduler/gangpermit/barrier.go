package gangpermit

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/patience"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// gang is the state of one gang at the barrier.
type gang struct {
	// group is the PodGroup's UID, empty until a member is at Permit: one may be lost before.
	group types.UID
	// need is the number of members of this cycle that must be here, itself included; 0 before the first arrives.
	need int
	// waiting are here, in order of arrival.
	waiting []types.UID
	// watched is set while a watchdog looks after those that wait.
	watched bool
	// failed is set when a member of this cycle was lost; it ends with the next cycle.
	failed bool
	// passed are the members that passed the barrier, sentBack those that were rejected and are not unreserved yet.
	passed, sentBack sets.Set[types.UID]
	// evicted are members whose eviction has begun; the cache still shows them for a while.
	evicted sets.Set[types.UID]
	// abandoned is closed, and made anew, when the gang is given up half bound.
	abandoned chan struct{}
	// last is its last start, nil before the first.
	last *start
}

// missing returns the number of members that the gang still needs to start.
func (p *GangPermit) missing(group *schedulingv1beta1.PodGroup, g *gang) int {
	minCount := int(group.Spec.SchedulingPolicy.Gang.MinCount)
	state, err := p.handle.PodGroupManager().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return minCount
	}
	assigned := state.AssignedPods()
	there := assigned.Len()
	// AllPods copies a set, and large gangs call it with each member that they lose.
	if !assigned.IsSuperset(g.passed) || g.evicted.Len() > 0 {
		all := state.AllPods()
		g.passed, g.evicted = g.passed.Intersection(all), g.evicted.Intersection(all)
		there = g.passed.Union(assigned).Difference(g.evicted).Len()
	}
	return minCount - there
}

// letGo allows all waiting members, or none if one of them does not wait any more; the last one passes with them. After
// it the gang has enough members: those that arrive later in the cycle pass at once.
func (p *GangPermit) letGo(g *gang, last *corev1.Pod) bool {
	// A member that was deleted before this is not reported again: gone knows only those on their way.
	if !p.exists(last) {
		return false
	}
	pods := make([]fwk.WaitingPod, len(g.waiting))
	for i, uid := range g.waiting {
		if pods[i] = p.handle.GetWaitingPod(uid); pods[i] == nil || !p.exists(pods[i].GetPod()) {
			return false
		}
	}
	if len(g.waiting) == 0 && g.last.holdsOthers() {
		p.follows[last.UID] = g.last // bound before those that the gang needs, it would be half a gang
	} else {
		p.begin(g, append(slices.Clone(g.waiting), last.UID)) // before the first of them can be on its way
	}
	for _, pod := range pods {
		pod.Allow(Name)
	}
	g.passed.Insert(g.waiting...)
	g.waiting, g.need = nil, 1
	return true
}

// exists reads the informer, which has a deletion before any handler is called.
func (p *GangPermit) exists(pod *corev1.Pod) bool {
	known, err := p.pods.Pods(pod.Namespace).Get(pod.Name)
	return err == nil && known.UID == pod.UID
}

// sendBack rejects all waiting members. A member that is on its way from Permit to waiting cannot be rejected yet; it
// stays in the list for the next call and, at the latest, runs into the timeout.
func (p *GangPermit) sendBack(g *gang) {
	var early []types.UID
	for _, uid := range g.waiting {
		waiting := p.handle.GetWaitingPod(uid)
		if waiting == nil {
			early = append(early, uid)
			continue
		}
		if waiting.Reject(Name, "another member of the gang was rejected") {
			g.sentBack.Insert(uid)
		}
	}
	g.waiting = early
}

func (p *GangPermit) gang(key types.NamespacedName) *gang {
	g := p.gangs[key]
	if g == nil {
		fresh := newGang()
		g = &fresh
		p.gangs[key] = g
	}
	return g
}

func newGang() gang {
	return gang{
		passed: sets.New[types.UID](), sentBack: sets.New[types.UID](), evicted: sets.New[types.UID](),
		abandoned: make(chan struct{}),
	}
}

// forget drops the barrier of a deleted group, but not that of a later one with the same name: our handler may learn of
// the deletion late.
func (p *GangPermit) forget(obj any) {
	group, ok := snapshot.ObjectOf[*schedulingv1beta1.PodGroup](obj)
	if !ok {
		return
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	p.clocks.Forget(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.gangs[key]; g != nil && (g.group == "" || g.group == group.UID) {
		delete(p.gangs, key)
	}
}

// longestWait is the framework's own limit for a pod at Permit.
const longestWait = 15 * time.Minute

// look sends the members at Permit back once the gang has stood still for its patience. All of a cycle's members are
// decided before the first waits, so this only ends a fault.
func (p *GangPermit) look(key types.NamespacedName, g *gang) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.watched = false
	if p.gangs[key] != g || len(g.waiting) == 0 {
		return
	}
	if p.clocks.Left(key, p.patience(key, p.limits.Grace)) > 0 {
		p.lookLater(key, g)
		return
	}
	g.failed = true
	p.sendBack(g)
}

func (p *GangPermit) lookLater(key types.NamespacedName, g *gang) {
	if g.watched {
		return
	}
	g.watched = true
	p.timing.AfterFunc(max(p.clocks.Left(key, p.patience(key, p.limits.Grace)), leastPause), func() { p.look(key, g) })
}

// leastPause is the least time between two checks of a gang.
const leastPause = time.Millisecond

// patience returns the limit that holds for a gang.
func (p *GangPermit) patience(key types.NamespacedName, limit time.Duration) time.Duration {
	group, err := p.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if err != nil {
		return limit
	}
	return patience.Of(group, limit)
}
