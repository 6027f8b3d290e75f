package failover

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/live/cluster/relay"
)

const (
	// MostExcess limits the excess of a silence that counts. A lease of 6 s leaves its leader 0.6 s to renew it after a
	// silence of 5 s.
	MostExcess = 200 * time.Millisecond
	// probeEvery is the time between two probes of the API server.
	probeEvery = 20 * time.Millisecond
	// endsWithin limits the time after a silence in which the leader has to renew its lease, or to end.
	endsWithin = 20 * time.Second
	// probeName is the lease that the probes write.
	probeName = "silence-probe"
)

// Silence is a time in which the API server answers no request that arrives through a relay.
type Silence struct {
	// Admin is the administrator's access, Relay is between the replicas and the API server.
	Admin *rest.Config
	Relay *relay.Relay
	// Lasting is the length of the silence.
	Lasting time.Duration
	// Lease names the lease, Holder is its holder's identity.
	Lease  types.NamespacedName
	Holder string
	// Ended reports whether the holder has ended.
	Ended func() bool
	Clock clock.Clock
}

// Keep silences the relay, and returns when the holder has renewed its lease afterwards or has ended. It returns the
// excess: the longest time without an answer after the instant at which the silence was meant to end. On a machine with
// too much to do the silence lasts longer than meant: the relay continues late, or the API server answers late.
func (s Silence) Keep(ctx context.Context) (time.Duration, error) {
	through, err := s.through(ctx)
	if err != nil {
		return 0, err
	}
	leases := through.CoordinationV1().Leases(metav1.NamespaceDefault)
	defer func() { // a leftover disturbs nothing
		_ = leases.Delete(context.WithoutCancel(ctx), probeName, metav1.DeleteOptions{})
	}()
	began := s.Clock.Now()
	s.Relay.Silence()
	s.Clock.Sleep(s.Lasting)
	s.Relay.Resume()
	excess := time.Duration(0)
	for last := began.Add(s.Lasting); ; s.Clock.Sleep(probeEvery) {
		held, err := s.probe(ctx, through)
		now := s.Clock.Now()
		if err == nil {
			excess = max(excess, now.Sub(last))
			last = now
		}
		switch {
		case s.Ended() || err == nil && s.renewed(held, began):
			return max(excess, now.Sub(last)), nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case now.Sub(began) > s.Lasting+endsWithin:
			return 0, fmt.Errorf("%s has not renewed lease %s after the silence, and has not ended", s.Holder, s.Lease)
		}
	}
}

// through returns a client that reaches the API server through the relay, as the replicas do, on a connection that
// exists before the silence.
func (s Silence) through(ctx context.Context) (kubernetes.Interface, error) {
	config := rest.CopyConfig(s.Admin)
	config.Host = "https://" + s.Relay.Address()
	config.QPS = -1 // the client's own limit would count as a late answer
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the relay: %w", err)
	}
	probe := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: probeName}}
	_, err = client.CoordinationV1().Leases(metav1.NamespaceDefault).Create(ctx, probe, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating lease %s: %w", probeName, err)
	}
	return client, nil
}

// probe writes one lease, as a renewal does, and reads the other.
func (s Silence) probe(ctx context.Context, through kubernetes.Interface) (coordinationv1.LeaseSpec, error) {
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, s.Clock.Now().UTC().Format(metav1.RFC3339Micro))
	_, err := through.CoordinationV1().Leases(metav1.NamespaceDefault).
		Patch(ctx, probeName, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return coordinationv1.LeaseSpec{}, fmt.Errorf("writing lease %s: %w", probeName, err)
	}
	held, err := through.CoordinationV1().Leases(s.Lease.Namespace).Get(ctx, s.Lease.Name, metav1.GetOptions{})
	if err != nil {
		return coordinationv1.LeaseSpec{}, fmt.Errorf("reading lease %s: %w", s.Lease, err)
	}
	return held.Spec, nil
}

// renewed reports whether the holder has renewed the lease since the silence began.
func (s Silence) renewed(held coordinationv1.LeaseSpec, began time.Time) bool {
	return held.HolderIdentity != nil && *held.HolderIdentity == s.Holder &&
		held.RenewTime != nil && held.RenewTime.After(began)
}
