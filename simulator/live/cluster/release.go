package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

// Release is one version of Lockstep: its executables, and the objects that it installs.
type Release struct {
	Controller, Scheduler string
	// Objects are applied in order, CRDs first and webhooks last.
	Objects []*unstructured.Unstructured
	// Profile is the scheduler's configuration, a file.
	Profile string
}

// errNoScheduler indicates that the cluster runs no lockstep-scheduler.
var errNoScheduler = errors.New("no lockstep-scheduler runs")

// ApplyRelease applies the objects of a release over existing ones, as kubectl apply --server-side --force-conflicts
// does. Objects that the release does not have stay.
func (c *Cluster) ApplyRelease(ctx context.Context, release Release) error {
	var crds, webhooks, others []*unstructured.Unstructured
	for _, object := range release.Objects {
		switch {
		case object.GetKind() == "CustomResourceDefinition":
			crds = append(crds, object)
		case isWebhooks(object):
			webhooks = append(webhooks, object)
		default:
			others = append(others, object)
		}
	}
	if err := c.ApplyAll(ctx, crds); err != nil {
		return err
	}
	if err := c.ApplyAll(ctx, others); err != nil {
		return err
	}
	return c.applyWebhooks(ctx, webhooks)
}

// DeleteRelease deletes the objects of a release, and with the CRDs every TrainJob and every runtime. Its namespaces
// have other objects in them, and stay.
func (c *Cluster) DeleteRelease(ctx context.Context, release Release) error {
	for _, object := range slices.Backward(release.Objects) {
		if object.GetKind() == "Namespace" {
			continue
		}
		if err := c.delete(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes an object and waits until it is removed.
func (c *Cluster) delete(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := c.resource(object)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			err := resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err //nolint:wrapcheck // it is wrapped below
		})
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// StopRelease stops lockstep-controller and lockstep-scheduler. The webhooks stay registered.
func (c *Cluster) StopRelease(ctx context.Context) error {
	if err := c.StopController(ctx); err != nil {
		return err
	}
	old := c.withdraw(c.plan.scheduler().name)
	if old == nil {
		return errNoScheduler
	}
	old.stop(ctx)
	return nil
}

// StartRelease starts the controller and the scheduler of a release, the scheduler with the configuration that the
// release ships, and returns when both are ready.
func (c *Cluster) StartRelease(ctx context.Context, release Release) error {
	controller, scheduler := c.plan.controller(), c.plan.scheduler()
	controller.binary, controller.version = release.Controller, moduleVersion(release.Controller, sourcetree.Module)
	scheduler.binary, scheduler.version = release.Scheduler, moduleVersion(release.Scheduler, sourcetree.Module)
	scheduler.args = append(scheduler.args, "--config="+release.Profile)
	return c.run(ctx, controller, scheduler)
}
