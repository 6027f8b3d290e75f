package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/manifests/probe"
)

// ErrNoGroups indicates that the cluster does not serve PodGroups; the text says how to switch them on.
var ErrNoGroups = errors.New("this cluster cannot place gangs")

// surveyed is a cluster in which the controller can work.
type surveyed struct {
	// options are those with which to work there.
	options config.Options
	offer   probe.Offer
	// lost are the namespaces in which the controller lacks a right.
	lost    []string
	clients kubernetes.Interface
	clock   clock.WithTicker
}

// survey looks at the cluster before work begins. The error says why the controller cannot work there, or must not.
func survey(
	ctx context.Context, restConfig *rest.Config, options config.Options, time clock.WithTicker,
) (surveyed, error) {
	clients, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return surveyed{}, fmt.Errorf("connecting to the cluster: %w", err)
	}
	found := surveyed{clients: clients, clock: time}
	if found.offer, err = ask(ctx, clients, options.Namespace); err != nil {
		return surveyed{}, err
	}
	if found.options, err = meetTrainer(ctx, clients, options); err != nil {
		return surveyed{}, err
	}
	found.options.Namespaces, found.lost, err = reachable(ctx, clients, options.Namespaces)
	if err != nil {
		return surveyed{}, err
	}
	return found, trust(ctx, restConfig, found)
}

// ask asks the cluster what it offers. A cluster without PodGroups is refused: a gang would start in parts there.
func ask(ctx context.Context, clients kubernetes.Interface, namespace string) (probe.Offer, error) {
	offer, err := probe.Cluster(ctx, clients, namespace)
	if err != nil {
		return probe.Offer{}, fmt.Errorf("asking the cluster what it offers: %w", err)
	}
	log := klog.FromContext(ctx)
	switch offer.Mode {
	case probe.None:
		return offer, fmt.Errorf("%w: %s", ErrNoGroups, offer.Missing())
	case probe.Groups:
		log.Info("Cluster offers gangs in part", "mode", offer.Mode, "missing", offer.Missing())
	case probe.Full:
		log.Info("Cluster offers gangs", "mode", offer.Mode)
	}
	return offer, nil
}

// watchLost has the manager start anew once the controller has its rights in a namespace that it lost.
func (s surveyed) watchLost(mgr ctrl.Manager) error {
	if len(s.lost) == 0 {
		return nil
	}
	if err := mgr.Add(regain{client: s.clients, lost: s.lost, clock: s.clock}); err != nil {
		return fmt.Errorf("adding the watch of lost namespaces: %w", err)
	}
	return nil
}
