package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Release is one version of Lockstep: its executables and its manifests.
type Release struct {
	Controller, Scheduler string
	// Manifests is the folder manifests of its source tree.
	Manifests fs.FS
}

// releaseFolders are the manifests that differ between releases, in the order in which they are applied. Earlier releases lack some.
func releaseFolders() []string { return []string{"crds", "gangs", "controller", "access", "scheduler"} }

// errNoScheduler indicates that the cluster runs no lockstep-scheduler.
var errNoScheduler = errors.New("no lockstep-scheduler runs")

// ApplyRelease applies the CRDs, roles, policies and webhooks of a release over those that are there, as kubectl apply --server-side
// --force-conflicts does. Objects that the release does not have stay.
func (c *Cluster) ApplyRelease(ctx context.Context, release Release) error {
	err := eachReleaseObject(release, func(object *unstructured.Unstructured) error { return c.Apply(ctx, object) })
	if err != nil {
		return err
	}
	if err := c.waitForCRDs(ctx); err != nil {
		return err
	}
	return c.applyWebhooks(ctx, release.Manifests)
}

// DeleteRelease deletes the CRDs, roles, policies and webhooks of a release, and with the CRDs every TrainJob and every runtime.
func (c *Cluster) DeleteRelease(ctx context.Context, release Release) error {
	err := c.DeleteWebhooks(
		ctx,
		"lockstep-defaulter.trainer.kubeflow.org",
		"lockstep-validator.trainer.kubeflow.org",
	)
	if err != nil {
		return err
	}
	return eachReleaseObject(release, func(object *unstructured.Unstructured) error { return c.delete(ctx, object) })
}

// delete deletes an object and waits until it is gone.
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

// eachReleaseObject calls back for the objects of a release. Its namespaces have other objects in them, and are passed over.
func eachReleaseObject(release Release, use func(*unstructured.Unstructured) error) error {
	for _, folder := range releaseFolders() {
		if _, err := fs.Stat(release.Manifests, folder); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := eachFile(release.Manifests, folder, func(content []byte) error {
			return eachObject(content, func(object *unstructured.Unstructured) error {
				if object.GetKind() == "Namespace" {
					return nil
				}
				return use(object)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// StopRelease stops lockstep-controller and lockstep-scheduler. The webhooks stay registered.
func (c *Cluster) StopRelease(ctx context.Context) error {
	if err := c.StopController(ctx); err != nil {
		return err
	}
	old := c.dismiss(c.plan.scheduler().name)
	if old == nil {
		return errNoScheduler
	}
	old.stop(ctx)
	return nil
}

// StartRelease starts the controller and the scheduler of a release, the scheduler with the configuration that the release ships, and
// returns when both are ready.
func (c *Cluster) StartRelease(ctx context.Context, release Release) error {
	shipped, err := fs.ReadFile(release.Manifests, "scheduler/config.yaml")
	if err != nil {
		return fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	config, err := schedulerConfig(shipped, c.plan.access.schedulerKubeconfig)
	if err != nil {
		return err
	}
	if _, err := c.plan.state.write(config, "config", "scheduler.yaml"); err != nil {
		return err
	}
	controller, scheduler := c.plan.controller(), c.plan.scheduler()
	controller.binary, controller.version = release.Controller, moduleVersion(release.Controller, modulePath)
	scheduler.binary, scheduler.version = release.Scheduler, moduleVersion(release.Scheduler, modulePath)
	return c.run(ctx, controller, scheduler)
}
