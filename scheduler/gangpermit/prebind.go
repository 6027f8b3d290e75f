package gangpermit

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/patience"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// start is the members that Permit let go together, on their way to their nodes. Whatever can fail before a pod is
// bound (a device that cannot be allocated, a volume that is never attached) fails for all of them.
type start struct {
	of *gang
	// members that have not been bound to go yet, left of them not ready.
	members []types.UID
	left    int
	// nodes are those of the members that are ready.
	nodes map[string]bool
	// ready is closed when all are ready to be bound, failed when one was lost before.
	ready, failed chan struct{}
}

// begin opens the way for the members of one start.
func (p *GangPermit) begin(g *gang, members []types.UID) {
	s := &start{
		of: g, members: members, left: len(members), nodes: make(map[string]bool),
		ready: make(chan struct{}), failed: make(chan struct{}),
	}
	for _, uid := range members {
		p.starts[uid] = s
	}
	g.last = s
}

// holdsOthers reports whether members beyond those of a start have to wait for it: it has several, not all of them are
// ready, and none was lost.
func (s *start) holdsOthers() bool {
	if s == nil || len(s.members) < 2 || over(s) {
		return false
	}
	select {
	case <-s.ready:
		return false
	default:
		return true
	}
}

// set lets the members of a start continue. Nothing holds them any more.
func (p *GangPermit) set(s *start) {
	for _, uid := range s.members {
		if p.starts[uid] == s {
			delete(p.starts, uid)
		}
	}
	close(s.ready)
}

// lost fails the start of a member, if it is on its way. Each member of the start learns of that when it arrives. From
// now on none of them counts as passed: the first one to return must wait for the others.
func (p *GangPermit) lost(uid types.UID) {
	s := p.starts[uid]
	if s == nil || over(s) {
		return
	}
	close(s.failed)
	for _, member := range s.members {
		s.of.passed.Delete(member)
		s.of.sentBack.Insert(member)
	}
	for follower, of := range p.follows {
		if of == s {
			s.of.passed.Delete(follower)
			s.of.sentBack.Insert(follower)
		}
	}
}

// gone fails the start of a pod that is deleted on its way.
func (p *GangPermit) gone(obj any) {
	if pod, ok := snapshot.ObjectOf[*corev1.Pod](obj); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lost(pod.UID)
	}
}

// nodeGone fails the starts of those that are ready to be bound to a node that is deleted: the API server would bind
// them all the same.
func (p *GangPermit) nodeGone(obj any) {
	node, ok := snapshot.ObjectOf[*corev1.Node](obj)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, s := range p.starts {
		if s.nodes[node.Name] {
			p.lost(uid)
		}
	}
}

// PreBindPreFlight reports whether the pod is a member on its way. The framework asks only where it announces nodes.
func (p *GangPermit) PreBindPreFlight(
	_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string,
) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.starts[pod.UID] == nil && p.follows[pod.UID] == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

// PreBind holds a member until all are ready to be bound. It is the last of its point, so everything else that could
// fail is done by then; after it only the binding itself can. A member beyond those that the gang needs is held with
// them, and its loss is not theirs.
func (p *GangPermit) PreBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	p.mu.Lock()
	s := p.starts[pod.UID]
	if s == nil { // in no gang, or one of more than its gang needs
		followed := p.follows[pod.UID]
		delete(p.follows, pod.UID)
		p.mu.Unlock()
		if followed == nil {
			return nil
		}
		return p.awaitOthers(ctx, followed, pod, node)
	}
	s.nodes[node] = true
	if _, err := p.nodes.Get(node); err != nil {
		p.lost(pod.UID) // deleted before this; nodeGone knows only the nodes of members that are ready
	}
	if s.left--; s.left == 0 && !over(s) {
		p.set(s)
	}
	p.mu.Unlock()

	return p.await(ctx, s, pod)
}

// await waits until all members of the start are ready, or one is lost, or the gang has stood still for longer than
// in-tree plugins take for a device and a volume. Each member that is ready restarts the gang's clock.
func (p *GangPermit) await(ctx context.Context, s *start, pod *corev1.Pod) *fwk.Status {
	key, _ := snapshot.GroupOf(pod)
	p.clocks.Further(key, pod.UID, patience.Prepared)
	limit := p.patience(key, p.limits.Preparation)
	for waits := true; waits; {
		left := p.clocks.Left(key, limit)
		if left == 0 {
			p.giveUp(pod.UID)
			break
		}
		select {
		case <-s.ready:
			waits = false
		case <-s.failed:
			waits = false
		case <-ctx.Done():
			p.giveUp(pod.UID)
			waits = false
		case <-p.timing.Clock.After(left):
		}
	}
	select {
	case <-s.ready: // in the meantime
		return nil
	default:
		return rejected()
	}
}

// awaitOthers is await for a member that is none of the start's. Its node may be deleted meanwhile, and the API server
// would bind it all the same.
func (p *GangPermit) awaitOthers(ctx context.Context, s *start, pod *corev1.Pod, node string) *fwk.Status {
	if status := p.await(ctx, s, pod); !status.IsSuccess() {
		return status
	}
	if _, err := p.nodes.Get(node); err != nil {
		return fwk.NewStatus(fwk.Unschedulable, "node "+node+" is deleted")
	}
	return nil
}

// over reports whether a member was lost.
func over(s *start) bool {
	select {
	case <-s.failed:
		return true
	default:
		return false
	}
}

func (p *GangPermit) giveUp(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost(uid)
}
