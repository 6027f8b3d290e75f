package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/controller/lease"
)

// rivalry is a rival that works from some time on until another.
type rivalry struct {
	from, until time.Time
	failure     error
	looks       int
}

func (r *rivalry) look(context.Context) (*resourcelock.LeaderElectionRecord, error) {
	r.looks++
	now := time.Now()
	if r.failure != nil || now.Before(r.from) || !now.Before(r.until) {
		return nil, r.failure
	}
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "trainer", LeaseDurationSeconds: 60}
	record.RenewTime.Time = now
	return &record, nil
}

// elected runs an elector for a time, and returns when it began to lead; zero if it did not.
func elected(t *testing.T, rival *rivalry, lasting time.Duration) time.Time {
	t.Helper()
	var led time.Time
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &lease.Unrivaled{
			Interface: &lease.Local{}, Rival: rival.look, Pause: 15 * time.Second, Clock: clock.RealClock{},
		},
		LeaseDuration: 6 * time.Second, RenewDeadline: 5 * time.Second, RetryPeriod: 250 * time.Millisecond,
		ReleaseOnCancel: true, Name: "we",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led = time.Now() }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	elector.Run(ctx)
	synctest.Wait()
	return led
}

// An elector waits as long as a rival works, leads after it, and checks after each pause and not at each try.
func TestUnrivaled_LeadsAfterTheRival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		rival := &rivalry{until: began.Add(5 * time.Minute)}
		waited := elected(t, rival, 10*time.Minute).Sub(began)
		if waited < 5*time.Minute || waited > 6*time.Minute+30*time.Second {
			t.Errorf("it leads after %v, want soon after 5m", waited)
		}
		if rival.looks > 30 {
			t.Errorf("it looked %d times", rival.looks)
		}
	})
}

// An elector without a rival leads at once.
func TestUnrivaled_LeadsWithoutRival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if led := elected(t, &rivalry{}, time.Minute); led.Sub(began) > time.Second {
			t.Errorf("it leads after %v", led.Sub(began))
		}
	})
}

// An elector that cannot look for rivals does not lead.
func TestUnrivaled_DoesNotLeadBlind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if led := elected(t, &rivalry{failure: errors.New("forbidden")}, time.Minute); !led.IsZero() {
			t.Error("it leads")
		}
	})
}

// A rival that appears between a look and the acquisition is seen. One that appears later leaves the lock to its
// holder, which can renew and release it.
func TestUnrivaled_LooksAtAcquisition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		rival := &rivalry{from: began.Add(time.Second), until: began.Add(time.Minute)}
		lock := &lease.Unrivaled{
			Interface: &lease.Local{}, Rival: rival.look, Pause: 15 * time.Second, Clock: clock.RealClock{},
		}
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity()}
		_, _, _ = lock.Get(t.Context())
		time.Sleep(2 * time.Second)
		if err := lock.Create(t.Context(), mine); !errors.Is(err, lease.ErrRival) {
			t.Errorf("acquiring beside a rival: %v", err)
		}
		time.Sleep(time.Minute)
		if err := lock.Create(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		rival.until = began.Add(time.Hour)
		for _, record := range []resourcelock.LeaderElectionRecord{mine, {}} {
			if got, _, err := lock.Get(t.Context()); err != nil || got.HolderIdentity != lock.Identity() {
				t.Errorf("the holder reads %+v, %v", got, err)
			}
			if err := lock.Update(t.Context(), record); err != nil {
				t.Errorf("writing %+v: %v", record, err)
			}
		}
		if err := lock.Update(t.Context(), mine); !errors.Is(err, lease.ErrRival) {
			t.Errorf("acquiring again beside a rival: %v", err)
		}
	})
}
