package kueuecheck

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// lookPause is the time between two looks for Kueue's API.
const lookPause = 5 * time.Second

// Arrival adds a Controller to a manager once the API server serves Kueue's kinds: Kueue may be installed after
// Lockstep.
type Arrival struct {
	Controller *Controller
	Manager    ctrl.Manager
	Discovery  discovery.DiscoveryInterface
	Clock      clock.WithTicker
}

// Start waits for Kueue's API, or until ctx ends.
func (a Arrival) Start(ctx context.Context) error {
	ticker := a.Clock.NewTicker(lookPause)
	defer ticker.Stop()
	for {
		switch served, err := a.served(); {
		case err != nil:
			klog.FromContext(ctx).Error(err, "Looking for Kueue's API failed; looking again")
		case served:
			klog.FromContext(ctx).
				Info("Answering Kueue's AdmissionChecks", "controllerName", controllerName, "after", a.Controller.After)
			return a.Controller.SetupWithManager(a.Manager)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// served reports whether the API server serves Workloads and AdmissionChecks.
func (a Arrival) served() (bool, error) {
	resources, err := a.Discovery.ServerResourcesForGroupVersion(group().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the resources of %s: %w", group(), err)
	}
	kinds := map[string]bool{}
	for _, resource := range resources.APIResources {
		kinds[resource.Kind] = true
	}
	return kinds["Workload"] && kinds["AdmissionCheck"], nil
}
