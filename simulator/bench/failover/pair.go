package failover

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/relay"
)

// The lease that the shipped configuration names.
const leaseNamespace, leaseName = "lockstep-system", "lockstep-scheduler"

// pair holds two schedulers, one of them leading. They reach the API server through a relay.
type pair struct {
	cluster *cluster.Cluster
	server  *relay.Relay
	clock   clock.Clock
	// standbyAfter is the plan's.
	standbyAfter time.Duration
	// running are the schedulers in the order in which they were started: the first leads.
	running []*cluster.Replica
	started int
}

// newPair puts two schedulers in place of the one that runs alone.
func newPair(ctx context.Context, c *cluster.Cluster, plan Plan) (*pair, error) {
	server, err := relay.Listen(ctx, "127.0.0.1:0", c.ServerAddress)
	if err != nil {
		return nil, err
	}
	p := &pair{cluster: c, server: server, clock: plan.Clock, standbyAfter: plan.StandbyAfter}
	c.DismissScheduler(ctx)
	return p, p.start(ctx)
}

// start starts both schedulers, while none runs.
func (p *pair) start(ctx context.Context) error {
	// A scheduler that was killed still holds the lease.
	err := p.cluster.Client.CoordinationV1().Leases(leaseNamespace).Delete(ctx, leaseName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the lease: %w", err)
	}
	if err := p.join(ctx); err != nil {
		return err
	}
	if err := p.awaitHolder(ctx, ""); err != nil {
		return err
	}
	return p.join(ctx)
}

// restart puts two new schedulers in place of those that run.
func (p *pair) restart(ctx context.Context) error {
	p.stop(ctx)
	return p.start(ctx)
}

// silence lets the schedulers receive no answer for a while, and returns the excess.
func (p *pair) silence(ctx context.Context, holder string) (time.Duration, error) {
	return Silence{
		Admin: p.cluster.Admin, Relay: p.server, Lasting: silence, Clock: p.clock,
		Lease: types.NamespacedName{Namespace: leaseNamespace, Name: leaseName}, Holder: holder,
		Ended: func() bool { return !p.leader().Runs() },
	}.Keep(ctx)
}

// allRun returns an error if a scheduler has ended by itself.
func (p *pair) allRun() error {
	for _, one := range p.running {
		if !one.Runs() {
			return fmt.Errorf("%s has ended by itself: %w", one.Name, errEnded)
		}
	}
	return nil
}

// errEnded indicates that a scheduler ended that must not.
var errEnded = errors.New("only a leader that is asked to stop, or is killed, may end")

func (p *pair) leader() *cluster.Replica { return p.running[0] }

// join starts one more scheduler.
func (p *pair) join(ctx context.Context) error {
	p.started++
	one, err := p.cluster.StartSchedulerReplica(ctx, strconv.Itoa(p.started), p.server.Address())
	if err != nil {
		return err
	}
	p.running = append(p.running, one)
	return nil
}

// succeed takes the former leader, which has ended, off the list, and starts a standby for the next one.
func (p *pair) succeed(ctx context.Context) error {
	p.running = p.running[1:]
	p.clock.Sleep(p.standbyAfter)
	return p.join(ctx)
}

// holder returns the holder of the lease.
func (p *pair) holder(ctx context.Context) (string, error) {
	lease, err := p.cluster.Client.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the lease: %w", err)
	}
	if lease.Spec.HolderIdentity == nil {
		return "", nil
	}
	return *lease.Spec.HolderIdentity, nil
}

// awaitHolder waits until another one holds the lease.
func (p *pair) awaitHolder(ctx context.Context, than string) error {
	err := wait.PollUntilContextTimeout(
		ctx,
		50*time.Millisecond,
		time.Minute,
		true,
		func(ctx context.Context) (bool, error) {
			holder, err := p.holder(ctx)
			return err == nil && holder != than, nil
		},
	)
	if err != nil {
		return fmt.Errorf("waiting for a leader: %w", err)
	}
	return nil
}

// stop ends the schedulers.
func (p *pair) stop(ctx context.Context) {
	for _, one := range p.running {
		one.Stop(ctx)
	}
	p.running = nil
}

// close ends all.
func (p *pair) close(ctx context.Context) {
	p.stop(ctx)
	p.server.Close()
}
