package gangplacement

import (
	"cmp"
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// leaseRestorer leases, once after a start of the scheduler, places for the members that running gangs lack: late ones,
// and those of a start that was cut off. Gangs that wait longer would take them otherwise.
//
// Only the scheduling loop uses it, so it has no lock.
type leaseRestorer struct {
	handle fwk.Handle
	queue  *waiting.Queue
	reader *waiting.Reader
	clock  clock.PassiveClock
	// store has the state of the last scheduler; nil for none.
	store *Store
	// restored is set once the places are leased again.
	restored bool
}

// restore leases the places in the first cycle, before anything is placed.
func (r *leaseRestorer) restore(ctx context.Context) {
	if r.restored {
		return
	}
	r.restored = true
	if r.store != nil {
		r.store.Load(ctx)
		r.queue.RevokeUnless(r.lacksNodes)
	}
	all := r.handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups().Lister()
	groups, err := all.List(labels.Everything())
	if err != nil {
		return
	}
	nodes, err := r.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return
	}
	slices.SortFunc(groups, func(a, b *schedulingv1beta1.PodGroup) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, group := range groups {
		running := runningMembers(r.handle.SnapshotSharedLister(), group)
		if len(running) == 0 || group.Spec.SchedulingPolicy.Gang == nil || snapshot.JobEnded(group) {
			continue
		}
		if err := r.restoreOne(ctx, group, running, nodes); err != nil {
			klog.FromContext(ctx).Info("No place is free for a member", "podGroup", klog.KObj(group), "reason", err)
		}
	}
}

// lacksNodes reports whether the owner of a lease exists and has a pod without a node.
func (r *leaseRestorer) lacksNodes(id contention.ID) bool {
	owner, single := waiting.NameOf(id)
	if single {
		pod, err := r.handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(owner.Namespace).Get(owner.Name)
		return err == nil && pod.Spec.NodeName == ""
	}
	group, err := r.handle.SnapshotSharedLister().PodGroups().Get(owner.Namespace, owner.Name)
	if err != nil || snapshot.JobEnded(group) {
		return false
	}
	gang, members := group.Spec.SchedulingPolicy.Gang, r.handle.SnapshotSharedLister()
	return gang == nil || len(waitingMembers(members, group)) > 0 ||
		len(runningMembers(members, group)) < int(gang.MinCount)
}

// restoreOne leases places for the members that one gang lacks.
func (r *leaseRestorer) restoreOne(
	ctx context.Context, group *schedulingv1beta1.PodGroup, running []*corev1.Pod, nodes []fwk.NodeInfo,
) error {
	asked := waiting.Asked{Group: group, Running: running, Nodes: nodes, Now: r.clock.Now()}
	if len(running) < int(group.Spec.SchedulingPolicy.Gang.MinCount) {
		asked.Waiting = waitingMembers(r.handle.SnapshotSharedLister(), group)
	}
	x, err := r.reader.Read(ctx, asked)
	if err != nil {
		return err
	}
	if refusal := r.queue.HoldMissing(x); refusal != nil {
		return errors.New(refusal.String())
	}
	return nil
}
