package trainjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// applyFiles creates the objects that the job's pods mount: its ConfigMaps, and, before its JobSet and where pods are
// to start, its Secrets.
//
// The JobSet publishes the names of the Secrets, so they exist before it, also those of a suspended job: else a user
// could create one of these names while the job is queued, with keys of his own. At a start they may be absent, because
// an earlier version created the JobSet, or because they were deleted.
func (r *Reconciler) applyFiles(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned plan.Plan, jobSet *jobsetv1alpha2.JobSet,
) error {
	if err := r.applyConfigs(ctx, job, planned.ConfigMaps); err != nil {
		return err
	}
	if suspended(job) && jobSet != nil {
		return nil
	}
	for _, wanted := range planned.Secrets {
		if err := r.createSecret(ctx, job, wanted); err != nil {
			return err
		}
	}
	return nil
}

// applyConfigs applies the ConfigMaps that the job's pods mount.
func (r *Reconciler) applyConfigs(
	ctx context.Context, job *trainerv1alpha1.TrainJob, configs []*corev1.ConfigMap,
) error {
	for _, config := range configs {
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
			return r.applyConfigs(ctx, job, planned.ConfigMaps)
		}
		if err != nil {
			return fmt.Errorf("getting %s: %w", describe(config), err)
		}
	}
	return nil
}

// createSecret creates a Secret, unless an earlier reconciliation has. No Secret is read: one that exists is the job's
// own if the API server would let the controller delete it, because policy belongings.lockstep.dev denies that for all
// objects but those that belong to a TrainJob and are named after it, and only controllers of TrainJobs can write that
// they do.
func (r *Reconciler) createSecret(ctx context.Context, job *trainerv1alpha1.TrainJob, wanted plan.Secret) error {
	key := client.ObjectKey{Namespace: job.Namespace, Name: wanted.Name}
	secret, err := newSecret(wanted.Kind, job.Name)
	if err != nil {
		return fmt.Errorf("making the keys of Secret %s: %w", key, err)
	}
	secret.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, OwnerReferences: plan.Owners(job)}
	err = r.Client.Create(ctx, secret, client.FieldOwner(fieldManager))
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Secret %s: %w", key, err)
	}
	err = r.Client.Delete(ctx, secret, client.DryRunAll)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf(
			"creating Secret %s: %w; delete it, and the controller creates the job's own: %w",
			key,
			ErrForeign,
			err,
		)
	case err != nil:
		return fmt.Errorf("testing whether Secret %s is the job's own: %w", key, err)
	}
	return nil
}
