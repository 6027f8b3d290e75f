package controller

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/kueuecheck"
	"github.com/lockstep-project/lockstep/controller/moving"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
)

// surveyed is a cluster in which the controller can work.
type surveyed struct {
	// options are those with which to work there.
	options config.Options
	offer   probe.Offer
	// lost are the namespaces in which the controller lacks a right.
	lost    []string
	access  *rest.Config
	clients kubernetes.Interface
	clock   clock.WithTicker
}

// survey checks the cluster before work begins. The error is the reason why the controller cannot work there, or must
// not.
func survey(
	ctx context.Context, restConfig *rest.Config, options config.Options, time clock.WithTicker,
) (surveyed, error) {
	clients, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return surveyed{}, fmt.Errorf("connecting to the cluster: %w", err)
	}
	found := surveyed{access: restConfig, clients: clients, clock: time}
	if found.offer, err = ask(ctx, clients, options); err != nil {
		return surveyed{}, err
	}
	if found.options, err = meetTrainer(ctx, clients, options); err != nil {
		return surveyed{}, err
	}
	found.options.Namespaces, found.lost, err = reachable(ctx, clients, options.Namespaces, found.offer.API)
	if err != nil {
		return surveyed{}, err
	}
	return found, trust(ctx, found)
}

// ask probes the cluster's features. A cluster without PodGroups is refused: a gang would start in parts there.
func ask(ctx context.Context, clients kubernetes.Interface, options config.Options) (probe.Offer, error) {
	choice := probe.Choice{Wanted: options.GangAPI, Remember: true}
	offer, err := probe.Cluster(ctx, clients, options.Namespace, choice)
	if err != nil {
		return probe.Offer{}, fmt.Errorf("asking the cluster what it offers: %w", err)
	}
	log := klog.FromContext(ctx)
	switch offer.Mode {
	case probe.Groups, probe.Resources:
		log.Info("Cluster supports gang scheduling in part", "mode", offer.Mode, "missing", offer.Missing())
	case probe.Full:
		log.Info("Cluster supports gang scheduling", "mode", offer.Mode)
	}
	return offer, nil
}

// watchChoice has the manager restart once gangs are stored in the other API.
func (s surveyed) watchChoice(mgr ctrl.Manager) error {
	if err := mgr.Add(
		follow{client: s.clients, namespace: s.options.Namespace, api: s.offer.API, clock: s.clock},
	); err != nil {
		return fmt.Errorf("adding the watch of the gangs' API: %w", err)
	}
	return nil
}

// moveGangs has the leader move the gangs that exist in the other API.
func (s surveyed) moveGangs(mgr ctrl.Manager) error {
	if s.offer.Former == "" {
		return nil
	}
	from, err := gangapi.Client(s.access, s.offer.Former)
	if err != nil {
		return err
	}
	to, err := gangapi.Client(s.access, s.offer.API)
	if err != nil {
		return err
	}
	mover := moving.Mover{
		Old: from, New: to, To: s.offer.API, Jobs: mgr.GetClient(), Namespaces: s.options.Namespaces, Clock: s.clock,
	}
	if err := mgr.Add(mover); err != nil {
		return fmt.Errorf("adding the mover of gangs: %w", err)
	}
	return nil
}

// answerKueue has the leader answer Kueue's AdmissionChecks, if that is enabled.
func (s surveyed) answerKueue(mgr ctrl.Manager) error {
	if s.options.KueueCheckAfter == 0 {
		return nil
	}
	arrival := kueuecheck.Arrival{
		Controller: &kueuecheck.Controller{
			Client: mgr.GetClient(),
			Cache:  mgr.GetCache(),
			Class:  s.options.Class(),
			Clock:  s.clock,
			After:  s.options.KueueCheckAfter,
		},
		Manager: mgr, Discovery: s.clients.Discovery(), Clock: s.clock,
	}
	if err := mgr.Add(arrival); err != nil {
		return fmt.Errorf("adding the answers to Kueue's AdmissionChecks: %w", err)
	}
	return nil
}

// follow ends when gangs are no longer stored in api. It needs no leader.
type follow struct {
	client    kubernetes.Interface
	namespace string
	api       gangapi.API
	clock     clock.WithTicker
}

// NeedLeaderElection reports that every replica follows.
func (follow) NeedLeaderElection() bool { return false }

// Start waits until ctx ends; the error names the API in which gangs are stored now.
func (f follow) Start(ctx context.Context) error {
	return gangapi.Follow(ctx, f.client, f.namespace, f.api, f.clock)
}

// watchLost has the manager restart once the controller has its rights in a lost namespace again.
func (s surveyed) watchLost(mgr ctrl.Manager) error {
	if len(s.lost) == 0 {
		return nil
	}
	if err := mgr.Add(regain{client: s.clients, api: s.offer.API, lost: s.lost, clock: s.clock}); err != nil {
		return fmt.Errorf("adding the watch of lost namespaces: %w", err)
	}
	return nil
}
