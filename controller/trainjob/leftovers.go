package trainjob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// removeLeftovers deletes the files, the keys, the Service and the frozen state of a job that has ended: no other
// controller would before the TrainJob itself is deleted, and a cluster has thousands of those. A suspended job needs
// its own to resume. It returns the requeue delay; zero if nothing is left to do.
//
// The copy of the runtime and the frozen state are deleted last: both are in our cache, and their absence proves that
// all is deleted, without repeated requests for each finished job. A job that an earlier version finished has only a
// copy.
func (r *Reconciler) removeLeftovers(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) (time.Duration, error) {
	if !job.Ended() {
		return 0, nil
	}
	leftovers, err := r.leftovers(ctx, job)
	if err != nil || len(leftovers) == 0 {
		return 0, err
	}
	if err := r.setTTL(ctx, job, jobSet); err != nil { // by the frozen runtime, which is deleted below
		return 0, err
	}
	if left := linger - r.Clock.Since(endOf(job)); left > 0 {
		return left, nil
	}
	if err := r.removeSecrets(ctx, job, leftovers); err != nil {
		return 0, err
	}
	for _, name := range plan.ConfigNames(job) {
		if err := r.removeNamed(ctx, job, named("ConfigMap", job, name)); err != nil {
			return 0, err
		}
	}
	if err := r.removeService(ctx, job, jobSet); err != nil {
		return 0, err
	}
	for _, object := range leftovers {
		if err := r.erase(ctx, object); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// leftovers returns a job's own records in the cache: the copy of its runtime and its frozen state, in that order.
func (r *Reconciler) leftovers(ctx context.Context, job *trainerv1alpha1.TrainJob) ([]client.Object, error) {
	var found []client.Object
	copied := named("ConfigMap", job, resolve.CopyName(job))
	switch err := r.Client.Get(ctx, client.ObjectKeyFromObject(copied), copied); {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("getting %s: %w", describe(copied), err)
	case err == nil && owns(job, copied):
		found = append(found, copied)
	}
	state := &statev1alpha1.FrozenTrainJob{}
	switch err := r.Client.Get(ctx, r.Resolver.FrozenKey(job), state); {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("getting FrozenTrainJob %s: %w", r.Resolver.FrozenKey(job), err)
	case err == nil:
		found = append(found, state)
	}
	return found, nil
}

// removeSecrets deletes the Secrets whose random names are recorded in the frozen state, without reading them. Secrets
// with the fixed names of an earlier version may be another object's, and stay until the garbage collector follows the
// deleted TrainJob. A Secret that the API server does not let the controller delete stays too: a user has put it in the
// place of the job's.
func (r *Reconciler) removeSecrets(
	ctx context.Context, job *trainerv1alpha1.TrainJob, leftovers []client.Object,
) error {
	for _, object := range leftovers {
		state, ok := object.(*statev1alpha1.FrozenTrainJob)
		if !ok || state.Spec.Decisions.SecretSuffix == "" {
			continue
		}
		for _, name := range plan.SecretNames(job, state.Spec.Decisions.SecretSuffix) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: name}}
			err := r.Client.Delete(ctx, secret)
			if apierrors.IsForbidden(err) {
				klog.FromContext(ctx).Info("Leaving a Secret that is not the job's own",
					"secret", klog.KObj(secret), "trainJob", klog.KObj(job), "reason", err.Error())
				continue
			}
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting Secret %s: %w", client.ObjectKeyFromObject(secret), err)
			}
		}
	}
	return nil
}

// removeNamed deletes an object of the job's, if there is one. It is read past the cache, which has none of its kind.
func (r *Reconciler) removeNamed(
	ctx context.Context, job *trainerv1alpha1.TrainJob, object *metav1.PartialObjectMetadata,
) error {
	found, err := r.exists(ctx, object)
	if err != nil || !found {
		return err
	}
	return r.remove(ctx, job, object)
}

// removeService deletes the Service by which the pods of the JobSet found each other.
func (r *Reconciler) removeService(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) error {
	if jobSet == nil {
		return nil
	}
	service := named("Service", job, subdomainOf(jobSet))
	found, err := r.exists(ctx, service)
	if err != nil || !found || !ownership.Controls(jobSet, jobsetv1alpha2.GroupVersion.WithKind("JobSet"), service) {
		return err
	}
	return r.erase(ctx, service)
}

// exists reads an object past the cache, and reports whether there is one.
func (r *Reconciler) exists(ctx context.Context, object *metav1.PartialObjectMetadata) (bool, error) {
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting %s: %w", describe(object), err)
	}
	return true, nil
}

// named is the metadata, yet unknown, of an object beside the job.
func named(kind string, job *trainerv1alpha1.TrainJob, name string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	object.SetNamespace(job.Namespace)
	object.SetName(name)
	return object
}

// subdomainOf is the name of the Service by which a JobSet's pods find each other.
func subdomainOf(jobSet *jobsetv1alpha2.JobSet) string {
	if jobSet.Spec.Network != nil && jobSet.Spec.Network.Subdomain != "" {
		return jobSet.Spec.Network.Subdomain
	}
	return jobSet.Name
}
