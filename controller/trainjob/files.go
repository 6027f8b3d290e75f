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

// applyFiles creates the objects that the job's pods mount: its ConfigMaps, and, where pods are to start, its Secrets.
func (r *Reconciler) applyFiles(ctx context.Context, job *trainerv1alpha1.TrainJob, planned plan.Plan) error {
	for _, config := range planned.ConfigMaps {
		have := named("ConfigMap", job, config.Name)
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(config), have)
		if apierrors.IsNotFound(err) || err == nil && !owns(job, have) {
			// Only the present object shows whether it is foreign.
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
	if suspended(job) {
		return nil
	}
	for _, wanted := range planned.Secrets {
		if err := r.createSecret(ctx, job, wanted); err != nil {
			return err
		}
	}
	return nil
}

// restoreFiles recreates a deleted ConfigMap of a running job: a pod that starts anew would wait for it for ever. It
// updates a ConfigMap whose content depends on more than the job. Secrets are not recreated while pods run: new ones
// would not match those that the pods mount.
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

// createSecret creates a Secret, unless an earlier start of the job has. It is never read: the name is randomly
// generated and was recorded before, so a Secret of that name is the job's. Only Secrets that a JobSet names already
// have fixed names: the version that created the JobSet has compared their owner.
func (r *Reconciler) createSecret(ctx context.Context, job *trainerv1alpha1.TrainJob, wanted plan.Secret) error {
	key := client.ObjectKey{Namespace: job.Namespace, Name: wanted.Name}
	secret, err := newSecret(wanted.Kind, job.Name)
	if err != nil {
		return fmt.Errorf("making the keys of Secret %s: %w", key, err)
	}
	secret.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, OwnerReferences: plan.Owners(job)}
	err = r.Client.Create(ctx, secret, client.FieldOwner(fieldManager))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Secret %s: %w", key, err)
	}
	return nil
}
