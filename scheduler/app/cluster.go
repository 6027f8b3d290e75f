package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
)

const (
	// patience is the time for which an API server that does not answer is asked again, once every pause.
	patience = 30 * time.Second
	pause    = time.Second
)

// ask finds the API server as kube-scheduler does and probes it for the APIs of gangs.
func ask(
	ctx context.Context, master, kubeconfig, namespace string, wanted gangapi.API,
) (kubernetes.Interface, probe.Offer, error) {
	config, err := clientcmd.BuildConfigFromFlags(master, kubeconfig)
	if err != nil {
		return nil, probe.Offer{}, fmt.Errorf("finding the API server: %w", err)
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "probe"))
	if err != nil {
		return nil, probe.Offer{}, fmt.Errorf("making a client of %s: %w", config.Host, err)
	}
	offer, err := retry(ctx, client, namespace, wanted)
	return client, offer, err
}

// retry asks until the API server answers. An answer that refuses the question is final.
func retry(
	ctx context.Context,
	client kubernetes.Interface,
	namespace string,
	wanted gangapi.API,
) (probe.Offer, error) {
	choice := probe.Choice{Wanted: wanted, Remember: true}
	var offer probe.Offer
	var last error
	err := wait.PollUntilContextTimeout(ctx, pause, patience, true, func(ctx context.Context) (bool, error) {
		offer, last = probe.Cluster(ctx, client, namespace, choice)
		if errors.Is(last, gangapi.ErrNoAPI) {
			return false, last
		}
		if refusal := apierrors.APIStatus(nil); errors.As(last, &refusal) && !mayPass(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err == nil {
		return offer, nil
	}
	if last != nil {
		err = last
	}
	return probe.Offer{}, fmt.Errorf("asking the cluster what it offers: %w", err)
}

// mayPass reports whether the API server refused only because it is starting or busy, or because a new installation
// (the namespace, the permission) has not reached it.
func mayPass(err error) bool {
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsTimeout(
			err,
		) || apierrors.IsServerTimeout(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}
