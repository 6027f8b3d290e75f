package controller

import (
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/lease"
)

// leaseName is the lease for which replicas compete.
const leaseName = "lockstep-controller"

// The timing of the lease. The leader gives up renewDeadline after its first renewal that fails, which it begins
// retryPeriod after the last one that succeeded: before any other replica may take the lease, leaseDuration after it
// saw that one (lease.Bounded ensures that). So
//
//   - a leader that was killed is followed within leaseDuration and two waits of at most 2.2 retryPeriods (client-go's jitter), one
//     until the other replica sees the last renewal and one until it tries: 7.1 s;
//   - an API server that is silent for 5 s changes no leader: 0.6 s are left for the renewal after it;
//   - the lease is written four times a second, and read two to four times by each other replica.
const (
	leaseDuration = 6 * time.Second // in whole seconds: a Lease has no fractions
	renewDeadline = 5600 * time.Millisecond
	retryPeriod   = 250 * time.Millisecond
)

// ending is the time that a stopped controller may take for the requests and reconciliations that are under way, while
// it still leads. They end within 2 s unless the API server does not answer. The status server's flushing follows.
const ending = 30 * time.Second

// compete has one replica of several work at a time, and none while a rival works. A replica that stops gives the lease
// away once its workers have ended. A controller without leader election competes with rivals only.
func compete(settings *ctrl.Options, restConfig *rest.Config, options config.Options, rivals *rivals) error {
	if !options.LeaderElect && rivals == nil {
		return nil
	}
	var lock resourcelock.Interface = &lease.Local{}
	if options.LeaderElect {
		var err error
		if lock, err = lockOf(restConfig, options); err != nil {
			return err
		}
	}
	if rivals != nil {
		lock = &lease.Unrivaled{Interface: lock, Rival: rivals.record, Pause: rivalPause, Clock: rivals.clock}
	}
	if options.LeaderElect {
		lock = &lease.Bounded{Interface: lock, Lasting: leaseDuration, Clock: clock.RealClock{}}
	}
	settings.LeaderElection = true
	settings.LeaderElectionResourceLockInterface = lock
	settings.LeaderElectionReleaseOnCancel = true
	settings.LeaseDuration = new(leaseDuration)
	settings.RenewDeadline = new(renewDeadline)
	settings.RetryPeriod = new(retryPeriod)
	return nil
}

// lockOf is the lock for which replicas compete: our lease, and Kubeflow Trainer's if this controller takes over from
// it.
func lockOf(restConfig *rest.Config, options config.Options) (resourcelock.Interface, error) {
	access := rest.AddUserAgent(restConfig, "leader-election") // a copy
	access.Timeout = renewDeadline / 2                         // one request that hangs must not cost the lease
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this replica: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID())
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events(options.Namespace)})
	single := func(namespace, name string, recorder resourcelock.EventRecorder) resourcelock.Interface {
		return &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: recorder},
		}
	}
	own := single(options.Namespace, leaseName,
		events.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: identity}))
	if options.TakeOver != "" {
		return &lease.Both{Own: own, Other: single(options.TakeOver, lease.Trainer, nil)}, nil
	}
	return own, nil
}
