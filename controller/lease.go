package controller

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-project/lockstep/controller/config"
)

// leaseName is the lease for which replicas compete.
const leaseName = "lockstep-controller"

// The timing of the lease. The leader gives up renewDeadline after its first renewal that fails, which it begins retryPeriod after the last
// one that succeeded: before any other replica may take the lease, leaseDuration after it saw that one. So
//
//   - a leader that was killed is followed within leaseDuration and two waits of at most 2.2 retryPeriods (client-go's jitter), one
//     until the other replica sees the last renewal and one until it tries: 7.1 s;
//   - an API server that is silent for 5 s changes no leader: 0.6 s are left for the renewal after it;
//   - the lease is written four times a second, and read two to four times by each other replica.
const (
	leaseDuration = 6 * time.Second // in whole seconds: others are told no fractions
	renewDeadline = 5600 * time.Millisecond
	retryPeriod   = 250 * time.Millisecond
)

// ending is how long a controller that is stopped may take for the requests and reconciliations that are under way, while it still leads. They
// end within 2 s unless the API server does not answer. The status server's flushing follows.
const ending = 30 * time.Second

// compete has one replica of several work at a time. A replica that stops gives the lease away once its workers have ended.
func compete(settings *ctrl.Options, options config.Options) {
	settings.LeaderElection = options.LeaderElect
	settings.LeaderElectionID = leaseName
	settings.LeaderElectionNamespace = options.Namespace
	settings.LeaderElectionReleaseOnCancel = true
	settings.LeaseDuration = new(leaseDuration)
	settings.RenewDeadline = new(renewDeadline)
	settings.RetryPeriod = new(retryPeriod)
}
