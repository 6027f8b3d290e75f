package trainjob

import (
	"context"
	"fmt"
	"slices"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// ensureDomain creates the job's ComputeDomain where it is absent. It waits while an earlier one of the same name is
// not deleted yet.
//
// Deleting a domain deletes the daemons through which its pods reach each other, so it has to outlive the pods. The
// groups, which Kubernetes protects until their pods have ended, own it beside the job: when a user deletes the job,
// the garbage collector deletes the domain only after them.
func (r *Reconciler) ensureDomain(
	ctx context.Context, reader client.Reader, job *trainerv1alpha1.TrainJob, planned plan.Plan,
) (waiting bool, err error) {
	if planned.ComputeDomain == nil {
		return false, nil
	}
	have, err := r.domain(ctx, reader, job)
	if err != nil {
		return false, err
	}
	switch {
	case have != nil && !owns(job, have):
		return false, fmt.Errorf("%s: %w", describe(planned.ComputeDomain), ErrForeign)
	case have != nil && !have.DeletionTimestamp.IsZero():
		return true, nil
	}
	groups, err := owningGroups(ctx, reader, planned)
	if err != nil {
		return false, err
	}
	if have != nil &&
		!slices.ContainsFunc(groups, func(o metav1.OwnerReference) bool { return !isOwner(have, o) }) {
		return false, nil
	}
	want := planned.ComputeDomain.DeepCopy()
	want.SetOwnerReferences(append(want.GetOwnerReferences(), groups...))
	return false, r.applyUnstructured(ctx, want)
}

// owningGroups are references to those of the planned groups that there are.
func owningGroups(
	ctx context.Context, reader client.Reader, planned plan.Plan,
) (owners []metav1.OwnerReference, err error) {
	for _, want := range planned.PodGroups {
		var group schedulingv1beta1.PodGroup
		err := reader.Get(ctx, client.ObjectKeyFromObject(want), &group)
		if apierrors.IsNotFound(err) {
			continue // a cache that is behind
		}
		if err != nil {
			return nil, fmt.Errorf("getting %s: %w", describe(want), err)
		}
		owners = append(owners, metav1.OwnerReference{
			APIVersion: want.APIVersion, Kind: want.Kind, Name: group.Name, UID: group.UID,
		})
	}
	return owners, nil
}

func isOwner(object client.Object, want metav1.OwnerReference) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.APIVersion == want.APIVersion && o.Kind == want.Kind && o.Name == want.Name && o.UID == want.UID
	})
}

// domain reads the metadata of the ComputeDomain of the job's name; nil if there is none.
func (r *Reconciler) domain(
	ctx context.Context, reader client.Reader, job *trainerv1alpha1.TrainJob,
) (*metav1.PartialObjectMetadata, error) {
	found := domainMetadata()
	err := reader.Get(ctx, client.ObjectKeyFromObject(job), found)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is a normal answer
	}
	if err != nil {
		return nil, fmt.Errorf("getting ComputeDomain %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return found, nil
}

func domainMetadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(plan.ComputeDomainKind())
	return object
}

// releaseDomain deletes the ComputeDomain of a suspended or ended job when no group of it is left among groups, which
// are those that the cache shows: pods of a group that is left may not have ended. It returns the requeue delay; zero
// if nothing is left to do.
func (r *Reconciler) releaseDomain(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet, groups []client.Object,
) (time.Duration, error) {
	if !r.Options.ComputeDomains {
		return 0, nil
	}
	have, err := r.domain(ctx, r.Client, job)
	if err != nil || have == nil {
		return 0, err
	}
	if slices.ContainsFunc(groups, isGroup) {
		return waitForGroup, nil
	}
	// A cache that does not show a group yet is no proof.
	for _, name := range plan.GroupsOf(jobSet) {
		err := r.Live.Get(
			ctx,
			types.NamespacedName{Namespace: job.Namespace, Name: name},
			&schedulingv1beta1.PodGroup{},
		)
		if err == nil {
			return waitForGroup, nil
		}
		if !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("getting PodGroup %s/%s: %w", job.Namespace, name, err)
		}
	}
	return 0, r.remove(ctx, job, have)
}

func isGroup(object client.Object) bool {
	_, ok := object.(*schedulingv1beta1.PodGroup)
	return ok
}
