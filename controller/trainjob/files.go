package trainjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// applyFiles makes what the job's pods mount: its ConfigMaps, and its Secrets where they are absent.
func (r *Reconciler) applyFiles(ctx context.Context, job *trainerv1alpha1.TrainJob, planned plan.Plan) error {
	for _, config := range planned.ConfigMaps {
		have := named("ConfigMap", job, config.Name)
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(config), have)
		if apierrors.IsNotFound(err) || err == nil && !owns(job, have) {
			// Whether it is somebody else's, only what is there now can say.
			err = r.Live.Get(ctx, client.ObjectKeyFromObject(config), have)
		}
		switch {
		case err == nil && !owns(job, have):
			return fmt.Errorf("%s: %w", describe(config), ErrForeign)
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("getting %s: %w", describe(config), err)
		}
		if err := r.applyConfig(ctx, config, have); err != nil {
			return err
		}
	}
	for _, wanted := range planned.Secrets {
		if err := r.ensureSecret(ctx, job, wanted); err != nil {
			return err
		}
	}
	return nil
}

// restoreFiles makes a ConfigMap of a running job again if somebody deleted it: a pod that starts anew would wait for it for
// ever. One that follows what happens outside of the job is kept up to date. Secrets are not made again while pods run: theirs would no longer fit.
func (r *Reconciler) restoreFiles(ctx context.Context, job *trainerv1alpha1.TrainJob, planned plan.Plan) error {
	for _, config := range planned.ConfigMaps {
		have := &metav1.PartialObjectMetadata{}
		have.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(config), have)
		if apierrors.IsNotFound(err) || err == nil && outdated(have, config) {
			return r.applyFiles(ctx, job, plan.Plan{ConfigMaps: planned.ConfigMaps})
		}
		if err != nil {
			return fmt.Errorf("getting %s: %w", describe(config), err)
		}
	}
	return nil
}

// ensureSecret creates a Secret unless it is there. It is read past the cache: the controller has no business to keep every
// Secret of the cluster in its memory.
func (r *Reconciler) ensureSecret(ctx context.Context, job *trainerv1alpha1.TrainJob, wanted plan.Secret) error {
	var found corev1.Secret
	key := client.ObjectKey{Namespace: job.Namespace, Name: wanted.Name}
	err := r.Live.Get(ctx, key, &found)
	switch {
	case err == nil && !owns(job, &found):
		return fmt.Errorf("secret %s: %w", key, ErrForeign)
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("getting Secret %s: %w", key, err)
	}
	secret, err := newSecret(wanted.Kind, job.Name)
	if err != nil {
		return fmt.Errorf("making the keys of Secret %s: %w", key, err)
	}
	secret.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, OwnerReferences: plan.Owners(job)}
	if err := r.Client.Create(ctx, secret, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("creating Secret %s: %w", key, err)
	}
	return nil
}
