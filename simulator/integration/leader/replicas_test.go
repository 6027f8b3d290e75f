package leader_test

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/bench/failover"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/relay"
)

// replicas are the lockstep-controllers that run, in the order in which they were started: the first leads, and which
// that is after a change of leader, nothing else decides.
type replicas struct {
	t *testing.T
	// running are served by the Service of the webhooks.
	running []*cluster.Replica
	started int
	// server is between the replicas and the API server, service between the API server and the webhooks.
	server, service *relay.Relay
	webhooks        atomic.Value
}

// newReplicas puts two replicas in place of the controller that runs alone. They end with the test, and so do the
// relays between them and the API server.
func newReplicas(t *testing.T) *replicas {
	t.Helper()
	shared.DismissController(t.Context())
	r := &replicas{t: t}
	r.server = r.relay("127.0.0.1:0", shared.ServerAddress)
	r.service = r.relay(shared.WebhookAddress(), func() string { return r.webhooks.Load().(string) })
	t.Cleanup(func() {
		for _, replica := range r.running {
			replica.Stop(context.WithoutCancel(t.Context()))
		}
	})
	r.start()
	return r
}

// start starts two replicas, while none runs.
func (r *replicas) start() {
	r.t.Helper()
	// Of replicas that end together, the one that was just taking the lease may leave it without a successor.
	err := shared.Client.CoordinationV1().Leases(system).Delete(r.t.Context(), leaseName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.t.Fatal(err)
	}
	r.join()
	r.held()
	r.join()
}

// restart puts two new replicas in place of those that run.
func (r *replicas) restart() {
	r.t.Helper()
	for _, replica := range r.running {
		replica.Stop(r.t.Context())
	}
	r.running = nil
	r.start()
}

func (r *replicas) relay(address string, target func() string) *relay.Relay {
	r.t.Helper()
	made, err := relay.Listen(r.t.Context(), address, target)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(made.Close)
	return made
}

// join starts one more replica. It is ready when join returns.
func (r *replicas) join() {
	r.t.Helper()
	r.started++
	name := r.t.Name() + "-" + strconv.Itoa(r.started)
	replica, err := shared.StartReplica(r.t.Context(), name, r.server.Address())
	if err != nil {
		r.t.Fatal(err)
	}
	r.running = append(r.running, replica)
	r.webhooks.Store(r.running[0].Webhooks)
}

func (r *replicas) leader() *cluster.Replica { return r.running[0] }

// leave takes a replica out of the Service, as its deletion does.
func (r *replicas) leave(gone *cluster.Replica) {
	r.running = slices.DeleteFunc(r.running, func(replica *cluster.Replica) bool { return replica == gone })
	r.webhooks.Store(r.running[0].Webhooks)
}

func (r *replicas) stop(replica *cluster.Replica) {
	r.leave(replica)
	replica.Stop(r.t.Context())
}

func (r *replicas) kill(replica *cluster.Replica) {
	r.leave(replica)
	if err := replica.Kill(); err != nil {
		r.t.Error(err)
	}
}

// silence lets the replicas receive nothing of the API server for a time, and returns the excess. A leader that ends
// nevertheless leaves the Service.
func (r *replicas) silence(holder string, lasting time.Duration) time.Duration {
	r.t.Helper()
	leader := r.leader()
	excess, err := failover.Silence{
		Admin: shared.Admin, Relay: r.server, Lasting: lasting, Clock: clock.RealClock{},
		Lease: types.NamespacedName{Namespace: system, Name: leaseName}, Holder: holder,
		Ended: func() bool { return !leader.Runs() },
	}.Keep(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if !leader.Runs() {
		r.leave(leader)
	}
	return excess
}

// allRun fails the test unless no replica has ended.
func (r *replicas) allRun() {
	r.t.Helper()
	for _, replica := range r.running {
		if !replica.Runs() {
			r.t.Fatalf("%s has ended", replica.Name)
		}
	}
}

// held waits until some replica holds the lease.
func (r *replicas) held() {
	r.t.Helper()
	err := wait.PollUntilContextTimeout(r.t.Context(), 50*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			lease, err := shared.Client.CoordinationV1().Leases(system).Get(ctx, leaseName, metav1.GetOptions{})
			return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
		})
	if err != nil {
		r.t.Fatalf("nobody holds the lease: %v", err)
	}
}

const system, leaseName = "lockstep-system", "lockstep-controller"

// lease returns the lease, with its holder and its transitions.
func (r *replicas) lease() coordinationv1.LeaseSpec {
	r.t.Helper()
	lease, err := shared.Client.CoordinationV1().Leases(system).Get(r.t.Context(), leaseName, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return lease.Spec
}
