package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// ErrRival indicates that a lock is not acquired because a rival works.
var ErrRival = errors.New("a Kubeflow Trainer works")

// Unrivaled is a lock that no elector acquires while a rival works: a controller of the same jobs that holds a lease of
// its own. A rival does not end the holder's lock: the holder has to look for rivals itself, and stop before it
// releases the lock. Like other locks it is for one elector.
type Unrivaled struct {
	resourcelock.Interface

	// Rival returns the record of a rival that works; nil without one.
	Rival func(ctx context.Context) (*resourcelock.LeaderElectionRecord, error)
	// Pause is the time between two looks of a waiting elector. An acquisition always checks again.
	Pause time.Duration
	Clock clock.PassiveClock

	holds  bool
	looked time.Time
	rival  *resourcelock.LeaderElectionRecord
}

// Get returns the record of the rival if one works, so that an elector waits for it; else the record of the lock.
func (u *Unrivaled) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if isDue := u.looked.IsZero() || u.Clock.Since(u.looked) >= u.Pause; isDue && !u.holds {
		if err := u.look(ctx); err != nil {
			return nil, nil, err
		}
	}
	if u.rival != nil && !u.holds {
		return u.rival, []byte(u.rival.HolderIdentity + " " + u.rival.RenewTime.String()), nil
	}
	record, raw, err := u.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != u.Identity() {
		u.holds = false
	}
	return record, raw, err //nolint:wrapcheck // the elector looks at its kind
}

// Create creates the lock, unless a rival works.
func (u *Unrivaled) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return u.write(ctx, u.Interface.Create, record)
}

// Update acquires the lock, unless a rival works, or renews or releases it.
func (u *Unrivaled) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return u.write(ctx, u.Interface.Update, record)
}

func (u *Unrivaled) write(
	ctx context.Context, write func(context.Context, resourcelock.LeaderElectionRecord) error,
	record resourcelock.LeaderElectionRecord,
) error {
	mine := record.HolderIdentity == u.Identity()
	if mine && !u.holds {
		if err := u.look(ctx); err != nil {
			return err
		}
		if u.rival != nil {
			return fmt.Errorf("acquiring %s: %w as %s", u.Describe(), ErrRival, u.rival.HolderIdentity)
		}
	}
	if err := write(ctx, record); err != nil {
		return err
	}
	u.holds = mine
	return nil
}

func (u *Unrivaled) look(ctx context.Context) error {
	rival, err := u.Rival(ctx)
	if err != nil {
		return fmt.Errorf("looking for a rival: %w", err)
	}
	u.rival, u.looked = rival, u.Clock.Now()
	return nil
}
