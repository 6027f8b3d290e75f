package controller_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/controller/config"
)

func noon() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC) }

// leaseOf is a lease of Kubeflow Trainer that was renewed before noon.
func leaseOf(namespace, holder string, before time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "trainer.kubeflow.org"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &holder,
			RenewTime:            &metav1.MicroTime{Time: noon().Add(-before)},
			LeaseDurationSeconds: new(int32(15)),
		},
	}
}

// rivalsOf looks for a Kubeflow Trainer in a cluster with these objects.
func rivalsOf(
	options config.Options,
	objects ...runtime.Object,
) (*controller.Rivals, *fake.Clientset, *clocktesting.FakeClock) {
	client, clock := fake.NewClientset(objects...), clocktesting.NewFakeClock(noon())
	return controller.NewRivals(client, options, clock, prometheus.NewGauge(prometheus.GaugeOpts{})), client, clock
}

// No job gets two owners because a flag is missing, or names another namespace than that of the Kubeflow Trainer that
// works.
func TestRivals_Working(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease    *coordinationv1.Lease
		takeOver string
		works    bool
	}{
		"one that works":                   {lease: leaseOf("kubeflow", "a", time.Second), works: true},
		"one that works, to be taken over": {lease: leaseOf("kubeflow", "a", time.Second), takeOver: "kubeflow"},
		"one that works elsewhere":         {lease: leaseOf("ml", "a", time.Second), takeOver: "kubeflow", works: true},
		"one that ended a while ago":       {lease: leaseOf("kubeflow", "a", 2*time.Minute)},
		"one that gave its lease up":       {lease: leaseOf("kubeflow", "", time.Second)},
		"one whose clock is ahead":         {lease: leaseOf("kubeflow", "a", -time.Minute), works: true},
		"one renewed in the far future":    {lease: leaseOf("team-a", "a", -24*time.Hour)},
		"one renewed for ever":             {lease: leaseOf("team-a", "a", -1<<62)},
		"none":                             {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := config.Default()
			options.TakeOver = c.takeOver
			rivals, client, _ := rivalsOf(options)
			if c.lease != nil {
				if err := client.Tracker().Add(c.lease); err != nil {
					t.Fatal(err)
				}
			}
			found, err := rivals.Working(t.Context())
			if err != nil || (found != nil) != c.works {
				t.Errorf("it finds %v, %v", found, err)
			}
		})
	}
}

// Beside a Kubeflow Trainer, managedBy divides the jobs: no lease matters.
func TestRivals_NoneForChosenJobs(t *testing.T) {
	t.Parallel()
	options := config.Default()
	options.Manage = "chosen"
	if rivals, _, _ := rivalsOf(options); rivals != nil {
		t.Error("it looks for a Kubeflow Trainer")
	}
}

// A leader ends with one line when a Kubeflow Trainer is installed later, and not because one look fails.
func TestRivals_EndsTheLeader(t *testing.T) {
	t.Parallel()
	rivals, client, clock := rivalsOf(config.Default())
	failing := true
	client.PrependReactor("list", "leases", func(kubetesting.Action) (bool, runtime.Object, error) {
		return failing, nil, errors.New("not now")
	})
	ended := make(chan error, 1)
	go func() { ended <- rivals.Start(t.Context()) }()
	step := func() {
		before := len(client.Actions())
		for !clock.HasWaiters() {
		}
		clock.Step(controller.RivalPause)
		for len(client.Actions()) == before {
		}
	}
	step()
	failing = false
	step()
	if err := client.Tracker().Add(leaseOf("kubeflow", "a", -time.Minute)); err != nil {
		t.Fatal(err)
	}
	step()
	err := <-ended
	want := "a holds lease kubeflow/trainer.kubeflow.org; --take-over=kubeflow takes over from it, --manage=chosen works beside it"
	if !errors.Is(err, controller.ErrRival) || !strings.HasSuffix(err.Error(), want) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("it ends with %v, want %q", err, want)
	}
}

// A controller without leader election waits for a Kubeflow Trainer too, and leads after it.
func TestRivals_KeepFromLeading(t *testing.T) {
	t.Parallel()
	rivals, client, clock := rivalsOf(config.Default(), leaseOf("kubeflow", "a", time.Second))
	lock, err := rivals.Lock(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	if record, _, err := lock.Get(t.Context()); err != nil || record.HolderIdentity != "a" {
		t.Errorf("the holder is %+v, %v", record, err)
	}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity()}
	if err := lock.Create(t.Context(), mine); !errors.Is(err, controller.ErrRival) {
		t.Errorf("leading beside it: %v", err)
	}
	if err := client.CoordinationV1().
		Leases("kubeflow").
		Delete(t.Context(), "trainer.kubeflow.org", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.Step(controller.RivalPause)
	if _, _, err := lock.Get(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("after it, the lock reads %v", err)
	}
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Errorf("leading after it: %v", err)
	}
}

// A takeover from a deleted namespace needs one lease.
func TestMeetTrainer_TakeoverNeedsOneLease(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeflow"}})
	for namespace, left := range map[string]string{"gone": "", "kubeflow": "kubeflow", "": ""} {
		options := config.Default()
		options.TakeOver = namespace
		got, err := controller.MeetTrainer(t.Context(), client, options)
		if err != nil || got.TakeOver != left {
			t.Errorf("of %q it takes over %q, %v", namespace, got.TakeOver, err)
		}
	}
}
