package lease_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/lockstep-project/lockstep/controller/lease"
)

const (
	ours, theirs = "lockstep-system/lockstep-controller", "kubeflow-system/trainer.kubeflow.org"
	// second is the elections' second: a lease lasts two of them.
	second = 500 * time.Millisecond
)

// scene is a cluster with leases and the electors that compete for them.
type scene struct {
	t      *testing.T
	client *fake.Clientset

	mu      sync.Mutex
	leading map[string]bool
	// together are pairs of leaders at one time.
	together []string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("*", "leases", versioned(client))
	return &scene{t: t, client: client, leading: map[string]bool{}}
}

// versioned refuses writes over a lease that has changed meanwhile, as the API server does and the fake one does not:
// two electors that saw the same free lease must not both get it. The fake calls it under a lock.
func versioned(client *fake.Clientset) kubetesting.ReactionFunc {
	versions := 0
	return func(action kubetesting.Action) (bool, runtime.Object, error) {
		write, ok := action.(kubetesting.CreateAction) // an UpdateAction has its methods, too
		if !ok {
			return false, nil, nil
		}
		next := write.GetObject().(*coordinationv1.Lease)
		if action.GetVerb() == "update" {
			now, err := client.Tracker().Get(action.GetResource(), next.Namespace, next.Name)
			if err != nil {
				return true, nil, err
			}
			if now.(*coordinationv1.Lease).ResourceVersion != next.ResourceVersion {
				return true, nil, apierrors.NewConflict(
					action.GetResource().GroupResource(),
					next.Name,
					errors.New("it has changed"),
				)
			}
		}
		versions++
		next.ResourceVersion = strconv.Itoa(versions)
		return false, nil, nil
	}
}

func (s *scene) single(name, identity string) resourcelock.Interface {
	namespace, lock := "lockstep-system", "lockstep-controller"
	if name == theirs {
		namespace, lock = "kubeflow-system", lease.Trainer
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: lock},
		Client:     s.client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}

func (s *scene) both(identity string) resourcelock.Interface {
	return &lease.Both{Own: s.single(ours, identity), Other: s.single(theirs, identity)}
}

// elect runs an elector until it is stopped: gracefully, giving the lease up, or as one that dies.
func (s *scene) elect(lock resourcelock.Interface, releases bool) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	identity := lock.Identity()
	set := func(leads bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for other, on := range s.leading {
			if leads && on && other != identity {
				s.together = append(s.together, identity+" and "+other)
			}
		}
		s.leading[identity] = leads
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 4 * second, RenewDeadline: 3 * second, RetryPeriod: second / 2,
		ReleaseOnCancel: releases, Name: identity,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { set(true) }, OnStoppedLeading: func() { set(false) },
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { elector.Run(ctx); close(ended) }()
	return func() { cancel(); <-ended }
}

func (s *scene) leads(identity string, patience time.Duration) bool {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(second / 10) {
		s.mu.Lock()
		leads := s.leading[identity]
		s.mu.Unlock()
		if leads {
			return true
		}
	}
	return false
}

// holder returns the holder of a lease.
func (s *scene) holder(name string) string {
	s.t.Helper()
	record, _, err := s.single(name, "").Get(s.t.Context())
	if err != nil {
		return ""
	}
	return record.HolderIdentity
}

func (s *scene) wantNeverTwo() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pair := range s.together {
		s.t.Errorf("%s led at a time", pair)
	}
}

// Kubeflow Trainer leads, Lockstep waits for its end and leads; and the other way round.
func TestBoth_WaitsForTheOtherHolder(t *testing.T) {
	t.Parallel()
	for name, releases := range map[string]bool{"that gives its lease up": true, "that dies": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t)
				stop := s.elect(s.single(theirs, "trainer"), releases)
				if !s.leads("trainer", 20*second) {
					t.Fatal("Kubeflow Trainer does not lead")
				}
				giveUp := s.elect(s.both("lockstep"), true)
				if s.leads("lockstep", 6*second) {
					t.Error("Lockstep leads beside Kubeflow Trainer")
				}
				stop()
				if !s.leads("lockstep", 30*second) {
					t.Fatal("Lockstep does not take over")
				}
				if s.holder(ours) != "lockstep" || s.holder(theirs) != "lockstep" {
					t.Errorf("the leases are of %q and %q", s.holder(ours), s.holder(theirs))
				}
				back := s.elect(s.single(theirs, "trainer again"), true)
				if s.leads("trainer again", 6*second) {
					t.Error("Kubeflow Trainer leads beside Lockstep")
				}
				giveUp()
				if !s.leads("trainer again", 30*second) {
					t.Error("Kubeflow Trainer does not take over")
				}
				back()
				s.wantNeverTwo()
			})
		})
	}
}

// A replica of Lockstep that holds only its own lease, started without --take-over, prevents others from leading.
func TestBoth_WaitsForAReplicaWithOneLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		stop := s.elect(s.single(ours, "without"), true)
		if !s.leads("without", 20*second) {
			t.Fatal("the replica with one lease does not lead")
		}
		first, other := s.elect(s.both("first"), true), s.elect(s.both("second"), true)
		if s.leads("first", 6*second) || s.leads("second", second) {
			t.Error("a replica with both leases leads beside it")
		}
		stop()
		if !s.leads("first", 30*second) && !s.leads("second", second) {
			t.Error("no replica with both leases leads after it")
		}
		first()
		other()
		s.wantNeverTwo()
	})
}

// Of two that find the leases free at once, one gets them.
func TestBoth_WhoeverWritesLastIsRefused(t *testing.T) {
	t.Parallel()
	for _, rival := range []string{"a replica", "Kubeflow Trainer"} {
		s := newScene(t)
		free := resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}
		if err := s.both("earlier").Create(t.Context(), free); err != nil {
			t.Fatal(err)
		}
		first, second := s.both("rival"), s.both("lockstep")
		if rival == "Kubeflow Trainer" {
			first = s.single(theirs, "rival")
		}
		for _, lock := range []resourcelock.Interface{first, second} {
			if _, _, err := lock.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		mine, theirs := free, free
		mine.HolderIdentity, theirs.HolderIdentity = "lockstep", "rival"
		if err := first.Update(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		if err := second.Update(t.Context(), mine); !apierrors.IsConflict(err) {
			t.Errorf("after %s, Lockstep's write is answered %v", rival, err)
		}
		if record, _, err := second.Get(t.Context()); err != nil || record.HolderIdentity != "rival" {
			t.Errorf("the holder is %+v (%v), want %s", record, err, rival)
		}
	}
}

// A leader recreates its other lease after a deletion, and leads on.
func TestBoth_ADeletedLeaseIsMadeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		stop := s.elect(s.both("lockstep"), true)
		if !s.leads("lockstep", 20*second) {
			t.Fatal("it does not lead")
		}
		if err := s.client.CoordinationV1().
			Leases("kubeflow-system").
			Delete(t.Context(), lease.Trainer, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * second); s.holder(theirs) != "lockstep"; time.Sleep(second / 10) {
			if time.Now().After(end) {
				t.Fatal("the deleted lease is not made again")
			}
		}
		if !s.leads("lockstep", second) {
			t.Error("it leads no more")
		}
		stop()
	})
}

// Both leases are written or it is an error, and Kubeflow Trainer's is the last: a Lockstep that cannot lead does not
// hold it.
func TestBoth_HalfIsNotEnough(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	refused := errors.New("not now")
	s.client.PrependReactor("create", "leases", func(action kubetesting.Action) (bool, runtime.Object, error) {
		create, ok := action.(kubetesting.CreateAction)
		if !ok {
			return false, nil, nil
		}
		of, ok := create.GetObject().(*coordinationv1.Lease)
		if ok && of.Namespace == "kubeflow-system" {
			return true, nil, refused
		}
		return false, nil, nil
	})
	lock := s.both("lockstep")
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "lockstep", LeaseDurationSeconds: 15}
	if err := lock.Create(t.Context(), record); !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
	got, _, err := lock.Get(t.Context())
	if err != nil || got.HolderIdentity != "" {
		t.Errorf("with one lease of two the holder is %q, %v", got.HolderIdentity, err)
	}
}
