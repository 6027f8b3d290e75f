package app

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leading knows whether this process leads. kube-scheduler reports it to nothing but its own loop, so it is read where
// it is decided: in the writes of the lease.
type leading struct{ leads atomic.Bool }

// follow watches the lease of an election. A scheduler without one leads from the start.
func (l *leading) follow(election *leaderelection.LeaderElectionConfig) {
	if election == nil {
		l.leads.Store(true)
		return
	}
	election.Lock = &followedLock{Interface: election.Lock, leading: l}
}

// followedLock is a lease lock that notes its holder.
type followedLock struct {
	resourcelock.Interface

	leading *leading
}

// Create makes the lease, and with it this process the leader.
func (f *followedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return f.noted(record, f.Interface.Create(ctx, record))
}

// Update takes, renews or releases the lease.
func (f *followedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return f.noted(record, f.Interface.Update(ctx, record))
}

// noted follows a write that succeeded. One that failed changes nothing: the process leads until its lease is over, and
// then it ends.
func (f *followedLock) noted(record resourcelock.LeaderElectionRecord, err error) error {
	if err == nil {
		f.leading.leads.Store(record.HolderIdentity == f.Identity())
	}
	return err
}
