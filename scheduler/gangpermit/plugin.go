// Package gangpermit is the scheduler plugin that lets the members of a gang go to their nodes together or not at all.
//
// The members of one cycle wait at Permit until as many are there as the gang needs, then all go. They wait for each
// other once more when each is ready to be bound (PreBind): its devices are allocated and its volumes there. If one of
// them is lost before that, all are sent back.
package gangpermit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/failures"
	"github.com/lockstep-project/lockstep/scheduler/incompletegangs"
	"github.com/lockstep-project/lockstep/scheduler/leaving"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/patience"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "GangPermit"

// GangPermit is the barrier in front of binding.
type GangPermit struct {
	handle fwk.Handle
	pods   corelisters.PodLister
	nodes  corelisters.NodeLister
	limits patience.Limits
	clocks *patience.Clocks
	timing timing.Timing
	binder fwk.BindPlugin

	mu    sync.Mutex
	gangs map[types.NamespacedName]*gang
	// starts are the members on their way from Permit to their nodes.
	starts map[types.UID]*start
	// follows are members beyond those that their gang needs, with the start after which they may be bound.
	follows map[types.UID]*start
}

var (
	_ fwk.PermitPlugin      = (*GangPermit)(nil)
	_ fwk.PreBindPlugin     = (*GangPermit)(nil)
	_ fwk.BindPlugin        = (*GangPermit)(nil)
	_ fwk.ReservePlugin     = (*GangPermit)(nil)
	_ fwk.EnqueueExtensions = (*GangPermit)(nil)
)

// New returns the plugin's factory. binder makes the binder that the plugin calls, and acts reports whether this
// scheduler decides about gangs, and not another one for which it stands by.
func New(
	binder func(context.Context, fwk.Handle) (fwk.BindPlugin, error),
	ended *members.Ended,
	acts func() bool,
	t timing.Timing,
) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := config.Permit(object)
		if err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		bind, err := binder(ctx, handle)
		if err != nil {
			return nil, err
		}
		limits := patience.Limits{
			Grace:       args.Grace.Duration,
			Preparation: max(args.PreparationTimeout.Duration, args.Grace.Duration),
			Repair:      args.RepairTimeout.Duration,
		}
		p, err := newPlugin(handle, limits, bind, t)
		if err != nil {
			return nil, err
		}
		parts := incompletegangs.Parts{
			Ended: ended, Limits: limits, Clocks: p.clocks, Timing: t, Acts: acts, Abandon: p.abandon, Spare: p.spare,
			Accelerators: config.DefaultAccelerators(),
		}
		if err := incompletegangs.Watch(ctx, handle, parts); err != nil {
			return nil, fmt.Errorf("watching for incomplete gangs: %w", err)
		}
		if err := failures.Report(ctx, handle, ended, acts, t); err != nil {
			return nil, err
		}
		if err := failures.Mark(ctx, handle, ended, acts, t); err != nil {
			return nil, err
		}
		if err := leaving.Watch(ctx, handle, acts, t); err != nil {
			return nil, err
		}
		return p, nil
	}
}

func newPlugin(handle fwk.Handle, limits patience.Limits, binder fwk.BindPlugin, t timing.Timing) (*GangPermit, error) {
	p := &GangPermit{
		handle:  handle,
		limits:  limits,
		clocks:  patience.NewClocks(t.Clock),
		timing:  t,
		binder:  binder,
		gangs:   make(map[types.NamespacedName]*gang),
		starts:  make(map[types.UID]*start),
		follows: make(map[types.UID]*start),
	}
	core := handle.SharedInformerFactory().Core().V1()
	p.pods, p.nodes = core.Pods().Lister(), core.Nodes().Lister()
	nodes := core.Nodes().Informer()
	if _, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: p.nodeGone}); err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	pods := core.Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: p.gone}); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	groups := handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups().Informer()
	if _, err := groups.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: p.forget}); err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	return p, nil
}

// Name returns the plugin's name.
func (*GangPermit) Name() string { return Name }

// EventsToRegister returns no event: a rejected PodGroup is retried by the queue's timer, whatever is registered.
func (*GangPermit) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// Permit lets a member wait for the others. Pods that are in no gang pass.
func (p *GangPermit) Permit(
	_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string,
) (*fwk.Status, time.Duration) {
	key, ok := snapshot.GroupOf(pod)
	if !ok {
		return nil, 0
	}
	group, err := p.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if err != nil {
		return fwk.NewStatus(fwk.Unschedulable, "PodGroup "+key.Name+" is gone"), 0
	}
	if group.Spec.SchedulingPolicy.Gang == nil {
		return nil, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.gang(key)
	if g.group != "" && g.group != group.UID { // an earlier group of the same name is deleted, and its members with it
		*g = newGang()
	}
	g.group = group.UID
	if g.failed {
		p.sendBack(g) // those that could not be rejected yet
		return rejected(), 0
	}
	if g.need == 0 {
		missing := p.missing(group, g)
		if missing >= int(group.Spec.SchedulingPolicy.Gang.MinCount) {
			p.clocks.Begin(key) // none has a node
		}
		g.need = max(missing, 1)
	}
	p.clocks.Further(key, pod.UID, patience.Placed)
	if len(g.waiting)+1 < g.need {
		g.waiting = append(g.waiting, pod.UID)
		p.lookLater(key, g)
		return fwk.NewStatus(fwk.Wait), longestWait
	}
	if !p.letGo(g, pod) {
		g.failed = true
		p.sendBack(g)
		return rejected(), 0
	}
	g.passed.Insert(pod.UID)
	return nil, 0
}

func rejected() *fwk.Status {
	return fwk.NewStatus(fwk.Unschedulable, "another member of the gang was rejected")
}

// Reserve opens the barrier for a new cycle: a group's cycle tries all members before it submits any.
func (p *GangPermit) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	key, ok := snapshot.GroupOf(pod)
	if !ok || !state.IsPodGroupSchedulingCycle() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.gangs[key]; g != nil && len(g.waiting) == 0 {
		g.failed, g.need = false, 0
	}
	return nil
}

// Unreserve sends the gang back when a member is lost before all have arrived. Reservations that a group's cycle undoes
// while it tries its members were never at the barrier.
func (p *GangPermit) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	key, ok := snapshot.GroupOf(pod)
	if !ok || state.IsPodGroupSchedulingCycle() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.gang(key)
	g.waiting = slices.DeleteFunc(g.waiting, func(uid types.UID) bool { return uid == pod.UID })
	p.lost(pod.UID) // if its start is under way, it fails
	delete(p.starts, pod.UID)
	delete(p.follows, pod.UID)
	switch {
	case g.passed.Has(pod.UID):
		g.passed.Delete(pod.UID)
	case g.sentBack.Has(pod.UID):
		g.sentBack.Delete(pod.UID)
	default:
		g.failed = true
		p.sendBack(g)
	}
}
