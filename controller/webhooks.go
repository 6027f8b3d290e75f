package controller

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/lockstep-project/lockstep/controller/admission"
	"github.com/lockstep-project/lockstep/controller/certificate"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/fleet"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// The webhook configurations of the chart.
const (
	MutatingConfiguration   = "lockstep-defaulter.trainer.kubeflow.org"
	ValidatingConfiguration = "lockstep-validator.trainer.kubeflow.org"
)

// registerWebhooks serves admission for the jobs of the validator's class. From here on the manager runs the server,
// leader or not.
func registerWebhooks(
	ctx context.Context, mgr ctrl.Manager, resolver *resolve.Resolver, validator *admission.Validator,
) error {
	// The first job must not wait until thousands of nodes are listed.
	nodes, err := mgr.GetCache().GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	offers, err := fleet.NewWatch(nodes)
	if err != nil {
		return fmt.Errorf("keeping what nodes offer: %w", err)
	}
	validator.Offers = offers.Fleet
	admission.Register(mgr.GetWebhookServer(), validator, &admission.Defaulter{
		Class:    validator.Class,
		Runtimes: resolver,
		Live:     mgr.GetAPIReader(),
		Offers:   offers.Fleet,
		Reviews:  mgr.GetClient(),
		Clock:    clock.RealClock{},
	})
	return nil
}

// newWebhooks builds the server of the webhooks, and the keeper of their certificate if Lockstep manages it.
func newWebhooks(
	restConfig *rest.Config, scheme *runtime.Scheme, options config.Options,
) (webhook.Server, *certificate.Keeper, error) {
	settings := webhook.Options{
		Host: options.WebhookHost, Port: options.WebhookPort, CertDir: options.WebhookCertDir,
		TLSOpts: []func(*tls.Config){withoutStreams},
	}
	if options.CertManagement == config.External {
		// The server would report the same later, as if it were a fault of ours.
		folder := options.WebhookCertDir
		_, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
		if err != nil {
			return nil, nil, fmt.Errorf("%w: --webhook-cert-dir=%s: %w", ErrNoCertificate, folder, err)
		}
		return webhook.NewServer(settings), nil, nil
	}
	keeper, err := newKeeper(restConfig, scheme, options)
	if err != nil {
		return nil, nil, err
	}
	settings.TLSOpts = append(settings.TLSOpts, func(c *tls.Config) { c.GetCertificate = keeper.GetCertificate })
	return webhook.NewServer(settings), keeper, nil
}

// newKeeper returns the Keeper of our own certificate, with a client that reads past the manager's cache.
func newKeeper(
	restConfig *rest.Config, scheme *runtime.Scheme, options config.Options,
) (*certificate.Keeper, error) {
	direct, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	service := types.NamespacedName{Namespace: options.Namespace, Name: options.WebhookService}
	return &certificate.Keeper{
		Client: direct, Clock: clock.RealClock{},
		Secret:  types.NamespacedName{Namespace: options.Namespace, Name: options.WebhookSecret},
		Service: service, Hosts: certificate.Hosts(service, options.WebhookHost),
		Mutating: []string{MutatingConfiguration}, Validating: []string{ValidatingConfiguration},
	}, nil
}
