package lease

import (
	"context"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// Bounded is a lock with a holder that waits for no answer past the end of its lease. An elector that cannot renew the
// lease gives it up, with a read and a write, before it reports that it no longer leads: with an API server that does
// not answer, it would lead beside the next holder. Like other locks it is for one elector, and for one term.
type Bounded struct {
	resourcelock.Interface

	// Lasting is the time for which other electors respect the lease after they saw it renewed.
	Lasting time.Duration
	Clock   clock.PassiveClock

	// ends is the end of the holder's lease; zero until this lock holds it.
	ends time.Time
}

// Get reads the record.
func (b *Bounded) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := b.within(ctx)
	defer cancel()
	return b.Interface.Get(ctx) //nolint:wrapcheck // the elector looks at its kind
}

// Create writes the first record.
func (b *Bounded) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return b.write(ctx, b.Interface.Create, record)
}

// Update writes the next record.
func (b *Bounded) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return b.write(ctx, b.Interface.Update, record)
}

func (b *Bounded) write(
	ctx context.Context, write func(context.Context, resourcelock.LeaderElectionRecord) error,
	record resourcelock.LeaderElectionRecord,
) error {
	began := b.Clock.Now() // others see the renewal later
	ctx, cancel := b.within(ctx)
	defer cancel()
	if err := write(ctx, record); err != nil {
		return err
	}
	b.ends = time.Time{}
	if record.HolderIdentity == b.Identity() {
		b.ends = began.Add(b.Lasting)
	}
	return nil
}

// within limits a call to the time for which the lease is held, if it is.
func (b *Bounded) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.ends.IsZero() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, b.ends.Sub(b.Clock.Now()))
}
