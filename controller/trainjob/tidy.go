package trainjob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// tidy takes away the files, the keys and the Service of a job that is over: nobody else would before the TrainJob itself is
// deleted, and a cluster keeps thousands of those. A suspended job needs its own to go on. It returns when to come back;
// zero if nothing is left to do.
//
// The copy of the runtime goes last: it is in our cache, and that it is gone says that all is gone, without asking the API
// server about each finished job again and again.
func (r *Reconciler) tidy(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) (time.Duration, error) {
	if !ended(job) {
		return 0, nil
	}
	snapshot := named("ConfigMap", job, resolve.SnapshotName(job))
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(snapshot), snapshot); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		return 0, fmt.Errorf("getting %s: %w", describe(snapshot), err)
	}
	if left := linger - r.Clock.Since(endOf(job)); left > 0 {
		return left, nil
	}
	configs, secrets := plan.FileNames(job)
	for _, name := range secrets {
		if err := r.removeNamed(ctx, job, named("Secret", job, name)); err != nil {
			return 0, err
		}
	}
	for _, name := range configs {
		if err := r.removeNamed(ctx, job, named("ConfigMap", job, name)); err != nil {
			return 0, err
		}
	}
	if jobSet != nil {
		if err := r.removeNamed(ctx, jobSet, named("Service", job, subdomainOf(jobSet))); err != nil {
			return 0, err
		}
	}
	return 0, r.remove(ctx, job, snapshot)
}

// removeNamed deletes an object of the owner's, if there is one. It is read past the cache, which has none of its kind.
func (r *Reconciler) removeNamed(ctx context.Context, owner client.Object, object *metav1.PartialObjectMetadata) error {
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting %s: %w", describe(object), err)
	}
	return r.remove(ctx, owner, object)
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
