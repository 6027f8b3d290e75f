package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/controller/lease"
)

// hanging is a lock that stops answering at some time, until the caller loses patience.
type hanging struct {
	record resourcelock.LeaderElectionRecord
	from   time.Time
}

func (h *hanging) hang(ctx context.Context) error {
	if h.from.IsZero() || time.Now().Before(h.from) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hanging) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := h.record
	return &record, []byte(record.RenewTime.String()), h.hang(ctx)
}

func (h *hanging) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return h.Update(ctx, record)
}

func (h *hanging) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := h.hang(ctx); err != nil {
		return err
	}
	h.record = record
	return nil
}

func (*hanging) RecordEvent(string) {}
func (*hanging) Identity() string   { return "we" }
func (*hanging) Describe() string   { return "a lease" }

// A leader without answers from the API server leads no longer than its lease lasts: another replica may have it by
// then.
func TestBounded_NoReplicaLeadsPastItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lasting = 6 * time.Second
		lock := &hanging{}
		var stopped time.Time
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:          &lease.Bounded{Interface: lock, Lasting: lasting, Clock: clock.RealClock{}},
			LeaseDuration: lasting, RenewDeadline: lasting - 400*time.Millisecond, RetryPeriod: 250 * time.Millisecond,
			ReleaseOnCancel: true, Name: "we",
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() { stopped = time.Now() },
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		lock.from = time.Now().Add(time.Minute)
		elector.Run(t.Context())
		renewed := lock.record.RenewTime.Time
		if led := stopped.Sub(renewed); led > lasting || led < lasting-time.Second {
			t.Errorf("after its last renewal it led for %v, want nearly %v", led, lasting)
		}
	})
}
