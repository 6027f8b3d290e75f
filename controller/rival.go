package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/lease"
)

// ErrRival indicates that a Kubeflow Trainer works in the cluster, so that its jobs would have two controllers.
var ErrRival = lease.ErrRival

const (
	// rivalPatience is the time for which a lease counts as held after its last renewal: four times the duration of
	// Kubeflow Trainer's, because its clock is not ours.
	rivalPatience = time.Minute
	// rivalPause is the time between two looks for a Kubeflow Trainer. A look lists the leases of one name.
	rivalPause = 15 * time.Second
)

// rivals looks for a Kubeflow Trainer that works on the same jobs. It reads all leases of that name, because an
// administrator chooses the namespace; policy trainerleases.lockstep.dev denies tenants such a lease. A Kubeflow
// Trainer that elects no leader cannot be seen.
//
// A replica that leads ends when it sees one, and a replica that does not lead waits. All replicas serve webhooks
// meanwhile.
type rivals struct {
	client kubernetes.Interface
	// takeOver is the namespace of the lease for which this controller competes; empty for none.
	takeOver string
	clock    clock.WithTicker
	// seen is 1 while a Kubeflow Trainer works.
	seen prometheus.Gauge

	mu sync.Mutex
	// last is the holder that was seen last; empty without one.
	last string
}

// newRivals returns the search for a Kubeflow Trainer; nil if managedBy divides the jobs.
func newRivals(
	client kubernetes.Interface, options config.Options, time clock.WithTicker, seen prometheus.Gauge,
) *rivals {
	if options.Manage == string(class.Chosen) {
		return nil
	}
	return &rivals{client: client, takeOver: options.TakeOver, clock: time, seen: seen}
}

// working returns a lease that a Kubeflow Trainer holds; nil without one.
func (r *rivals) working(ctx context.Context) (*coordinationv1.Lease, error) {
	leases, err := r.client.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, lease.Trainer).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("looking for a Kubeflow Trainer: %w", err)
	}
	for i := range leases.Items {
		found := &leases.Items[i]
		if held(found, r.clock.Now()) && found.Namespace != r.takeOver {
			r.report(ctx, found)
			return found, nil
		}
	}
	r.report(ctx, nil)
	return nil, nil //nolint:nilnil // absence is a normal answer
}

// report logs a Kubeflow Trainer once when it appears and once when it disappears.
func (r *rivals) report(ctx context.Context, found *coordinationv1.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := klog.FromContext(ctx)
	if found == nil {
		r.seen.Set(0)
		if r.last != "" {
			log.Info("Kubeflow Trainer no longer works", "holder", r.last)
		}
		r.last = ""
		return
	}
	r.seen.Set(1)
	if holder := *found.Spec.HolderIdentity; holder != r.last {
		log.Error(describeRival(found), "TrainJobs are not reconciled; webhooks are served")
		r.last = holder
	}
}

// record returns a Kubeflow Trainer's lease in an elector's form; nil if none works.
func (r *rivals) record(ctx context.Context) (*resourcelock.LeaderElectionRecord, error) {
	found, err := r.working(ctx)
	if err != nil || found == nil {
		return nil, err
	}
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&found.Spec)
	record.LeaseDurationSeconds = int(rivalPatience / time.Second)
	return record, nil
}

// NeedLeaderElection reports that the leader watches; a replica that waits looks before it leads.
func (*rivals) NeedLeaderElection() bool { return true }

// Start ends with an ErrRival when a Kubeflow Trainer works.
func (r *rivals) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(rivalPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		found, err := r.working(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			klog.FromContext(ctx).Error(err, "Looking for a Kubeflow Trainer failed; looking again later")
		case found != nil:
			return describeRival(found)
		}
	}
}

// describeRival returns an error of one line with the working Kubeflow Trainer and the remedy.
func describeRival(found *coordinationv1.Lease) error {
	return fmt.Errorf(
		"%w in this cluster: %s holds lease %s/%s; --take-over=%s takes over from it, --manage=%s works beside it",
		ErrRival,
		*found.Spec.HolderIdentity,
		found.Namespace,
		found.Name,
		found.Namespace,
		class.Chosen,
	)
}

// held reports whether a lease has a holder that renews it. A renewal that is farther ahead of our clock than
// rivalPatience is none: clocks of two nodes differ by less, and a lease that a tenant wrote before policy
// trainerleases.lockstep.dev was installed would stop the controller for ever.
func held(found *coordinationv1.Lease, now time.Time) bool {
	if ptr.Deref(found.Spec.HolderIdentity, "") == "" || found.Spec.RenewTime == nil {
		return false
	}
	since := now.Sub(found.Spec.RenewTime.Time)
	return -rivalPatience <= since && since < rivalPatience
}
