package trainjob

import (
	"context"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// errNoTemplate indicates that the ResourceClaimTemplate for a claim that the gang's pods share does not exist.
var errNoTemplate = errors.New("it does not exist, and the gang shares a claim made of it")

// ensureClaims creates the claims that the pods of a group share by name, where they are absent, before the pods that
// name them. The group owns them: when it is deleted, as with every suspension, the garbage collector deletes them,
// too. It waits while a claim of an earlier group is not deleted yet. An existing claim is left unchanged, for its spec
// is immutable; the devices of pods that have ended are given back by Kubernetes.
func (r *Reconciler) ensureClaims(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned plan.Plan,
) (waiting bool, err error) {
	for _, claim := range planned.Claims {
		gone, err := r.ensureClaim(ctx, job, claim)
		if err != nil {
			return false, err
		}
		waiting = waiting || !gone
	}
	return waiting, nil
}

// ensureClaim reports whether the claim is there, and the group's.
func (r *Reconciler) ensureClaim(
	ctx context.Context, job *trainerv1alpha1.TrainJob, shared plan.SharedClaim,
) (bool, error) {
	in := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: job.Namespace, Name: name}
	}
	var group schedulingv1beta1.PodGroup
	if err := r.Live.Get(ctx, in(shared.Group), &group); err != nil {
		return false, fmt.Errorf("getting PodGroup %s: %w", in(shared.Group), err)
	}
	var have resourcev1.ResourceClaim
	switch err := r.Live.Get(ctx, in(shared.Name), &have); {
	case apierrors.IsNotFound(err):
		return true, r.makeClaim(ctx, job, shared, &group)
	case err != nil:
		return false, fmt.Errorf("getting ResourceClaim %s: %w", in(shared.Name), err)
	case ownership.Controls(&group, r.Options.GangAPI.GroupKind(), &have):
		return have.DeletionTimestamp.IsZero(), nil
	case ownership.ControllerOf(&have, r.Options.GangAPI.GroupKind()) == nil:
		return false, fmt.Errorf("ResourceClaim %s: %w", in(shared.Name), ErrForeign)
	}
	return false, nil // of an earlier group; it is deleted with that
}

func (r *Reconciler) makeClaim(
	ctx context.Context, job *trainerv1alpha1.TrainJob, shared plan.SharedClaim, group *schedulingv1beta1.PodGroup,
) error {
	var template resourcev1.ResourceClaimTemplate
	key := types.NamespacedName{Namespace: job.Namespace, Name: shared.Template}
	err := r.Live.Get(ctx, key, &template)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("ResourceClaimTemplate %s: %w", key, errNoTemplate)
	}
	if err != nil {
		return fmt.Errorf("getting ResourceClaimTemplate %s: %w", key, err)
	}
	// blockOwnerDeletion, which NewControllerRef sets, needs a right on the group's finalizers where the admission
	// plugin OwnerReferencesPermissionEnforcement is on, as in OpenShift; nothing waits for the claim to go before its
	// group.
	owner := metav1.NewControllerRef(group, r.Options.GangAPI.GroupKind())
	owner.BlockOwnerDeletion = nil
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: shared.Name,
			Labels: template.Spec.Labels, Annotations: template.Spec.Annotations,
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: template.Spec.Spec,
	}
	if err := r.Client.Create(ctx, claim, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("creating ResourceClaim %s: %w", client.ObjectKeyFromObject(claim), err)
	}
	return nil
}
