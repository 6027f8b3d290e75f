package controller

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// NewWebhooks builds the webhook server as Run does, without a manager.
var NewWebhooks = newWebhooks

// The settings of the status server, as in Run.
var (
	StatusServerURL  = statusServerURL
	CertificateFiles = certificateFiles
	// ConnectForReports makes the clients of the status server.
	ConnectForReports = connectForReports
)

// How long a controller that is stopped takes at most: first Ending, then Flushing.
const (
	Ending   = ending
	Flushing = flushing
)

// RunThenFlush runs a manager as Run does, with a status server.
func RunThenFlush(ctx context.Context, server flusher, mgr manager.Runnable) error {
	return reporting{server: server}.run(ctx, mgr)
}

// ServesState reports whether the API server serves FrozenTrainJobs.
var ServesState = servesState

// AuthenticateScrapers makes the filter of the metrics endpoint.
var AuthenticateScrapers = authenticateScrapers

// The checks of a controller before it starts.
var (
	MeetTrainer = meetTrainer
	Reachable   = reachable
)

// RivalPause is the time between two looks for a Kubeflow Trainer.
const RivalPause = rivalPause

// Rivals looks for a Kubeflow Trainer.
type Rivals = rivals

// NewRivals returns the search for a Kubeflow Trainer.
var NewRivals = newRivals

// Working returns the lease of a Kubeflow Trainer that works.
func (r *rivals) Working(ctx context.Context) (*coordinationv1.Lease, error) { return r.working(ctx) }

// Lock returns the lock of a controller that runs alone.
func (r *rivals) Lock(options config.Options) (resourcelock.Interface, error) {
	var settings manager.Options
	err := compete(&settings, nil, options, r)
	return settings.LeaderElectionResourceLockInterface, err
}

// RegainPause and NewRegain are about the namespaces in which the controller lacks a right.
const RegainPause = regainPause

// NewRegain returns the Runnable that waits for rights.
func NewRegain(client kubernetes.Interface, clock clock.WithTicker, lost ...string) manager.Runnable {
	return regain{client: client, api: gangapi.Native, lost: lost, clock: clock}
}
