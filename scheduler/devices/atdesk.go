package devices

import (
	"context"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
)

// atDesk is a client that sends the claim updates of pods through a desk.
type atDesk struct {
	kubernetes.Interface
	desk *desk
}

// ResourceV1 returns the client of claims.
func (c atDesk) ResourceV1() resourceclient.ResourceV1Interface {
	return resourcesAtDesk{c.Interface.ResourceV1(), c.desk}
}

type resourcesAtDesk struct {
	resourceclient.ResourceV1Interface
	desk *desk
}

// ResourceClaims returns the client of a namespace's claims.
func (c resourcesAtDesk) ResourceClaims(namespace string) resourceclient.ResourceClaimInterface {
	return claimsAtDesk{c.ResourceV1Interface.ResourceClaims(namespace), c.desk}
}

type claimsAtDesk struct {
	resourceclient.ResourceClaimInterface
	desk *desk
}

// Update brings an added finalizer to the desk. The in-tree plugin adds it before it writes devices; its other updates
// take it away.
func (c claimsAtDesk) Update(
	ctx context.Context, claim *resourcev1.ResourceClaim, options metav1.UpdateOptions,
) (*resourcev1.ResourceClaim, error) {
	if !slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
		written, err := c.ResourceClaimInterface.Update(ctx, claim, options)
		return written, err //nolint:wrapcheck // it stands in place of the client
	}
	seen := claim.DeepCopy()
	seen.Finalizers = slices.DeleteFunc(seen.Finalizers, func(f string) bool { return f == resourcev1.Finalizer })
	return c.desk.submit(ctx, c.ResourceClaimInterface, &change{seen: seen})
}

// UpdateStatus brings a reservation to the desk: the in-tree plugin has put it last. Its other updates give devices
// back.
func (c claimsAtDesk) UpdateStatus(
	ctx context.Context, claim *resourcev1.ResourceClaim, options metav1.UpdateOptions,
) (*resourcev1.ResourceClaim, error) {
	n := len(claim.Status.ReservedFor) - 1
	if claim.Status.Allocation == nil || n < 0 {
		written, err := c.ResourceClaimInterface.UpdateStatus(ctx, claim, options)
		return written, err //nolint:wrapcheck // it stands in place of the client
	}
	seen := claim.DeepCopy()
	seen.Status.ReservedFor = seen.Status.ReservedFor[:n]
	return c.desk.submit(ctx, c.ResourceClaimInterface, &change{
		seen: seen, consumer: &claim.Status.ReservedFor[n], devices: claim.Status.Allocation,
	})
}
