package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

var (
	// ErrNoNamespace indicates that the controller may work in none of its namespaces.
	ErrNoNamespace = errors.New("the controller has its rights in none of --namespaces")
	// errRegained ends a controller that has to start again to serve one more namespace.
	errRegained = errors.New("the controller has its rights in a namespace again, and starts anew to serve it")
)

// regainPause is the time that a controller runs before it restarts for a namespace. The administrator of a namespace
// can remove the rights and restore them, and must not block the jobs of other namespaces by that.
const regainPause = 5 * time.Minute

// reachable splits namespaces into those in which the controller may list and watch the kinds that it caches, and the
// others. A namespace that is not reachable, because its administrator deleted it or the Role there, would block the
// caches of all. A name stands for itself only, so without names all namespaces are reachable.
func reachable(
	ctx context.Context,
	client kubernetes.Interface,
	namespaces []string,
	api gangapi.API,
) (served, lost []string, err error) {
	if len(namespaces) == 0 {
		return nil, nil, nil
	}
	for _, namespace := range namespaces {
		missing, err := missingRight(ctx, client, namespace, api)
		switch {
		case err != nil:
			return nil, nil, err
		case missing == "":
			served = append(served, namespace)
		default:
			klog.FromContext(ctx).
				Error(nil, "Namespace is left alone: the controller lacks a right there", "namespace", namespace, "right", missing)
			lost = append(lost, namespace)
		}
	}
	if len(served) == 0 {
		return nil, lost, fmt.Errorf(
			"%w: %s; render the chart with them in its namespaces",
			ErrNoNamespace,
			strings.Join(lost, ", "),
		)
	}
	return served, lost, nil
}

// missingRight names the first right of a cache that the controller lacks in a namespace; "" if it lacks none.
func missingRight(
	ctx context.Context, client kubernetes.Interface, namespace string, api gangapi.API,
) (string, error) {
	resources, err := chart.Watched(api)
	if err != nil {
		return "", fmt.Errorf("reading the controller's role: %w", err)
	}
	for _, resource := range resources {
		for _, verb := range []string{"list", "watch"} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: resource.Group, Resource: resource.Resource,
				},
			}}
			answer, err := client.AuthorizationV1().
				SelfSubjectAccessReviews().
				Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return "", fmt.Errorf("asking for the controller's rights in namespace %s: %w", namespace, err)
			}
			if !answer.Status.Allowed {
				return verb + " " + resource.String(), nil
			}
		}
	}
	return "", nil
}

// regain waits until the controller has its rights in one of the namespaces that it lost, and returns errRegained then.
// It needs no leader.
type regain struct {
	client kubernetes.Interface
	api    gangapi.API
	lost   []string
	clock  clock.WithTicker
}

// NeedLeaderElection reports that every replica waits.
func (regain) NeedLeaderElection() bool { return false }

// Start waits until ctx ends.
func (r regain) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(regainPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		for _, namespace := range r.lost {
			missing, err := missingRight(ctx, r.client, namespace, r.api)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				klog.FromContext(ctx).Error(err, "Asking for rights failed; asking again later")
			case missing == "":
				return fmt.Errorf("%w: %s", errRegained, namespace)
			}
		}
	}
}
