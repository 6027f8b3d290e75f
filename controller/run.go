package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/admission"
	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/certificate"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/metrics"
	"github.com/lockstep-project/lockstep/controller/nodefit"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/podsecurity"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/controller/servedkinds"
	"github.com/lockstep-project/lockstep/controller/trainjob"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
)

// readyPatience is the time for which readyz waits for caches that are being filled; a kubelet asks with 1 s of
// patience.
const readyPatience = 500 * time.Millisecond

var (
	// ErrNoConfig indicates that there is no usable kubeconfig and no service account.
	ErrNoConfig = errors.New("finding the cluster")
	// ErrNoCertificate indicates that there is no usable certificate in the folder that another party maintains.
	ErrNoCertificate = errors.New("reading the certificate of the webhooks")
	errNotSynced     = errors.New("the caches are not filled yet")
)

// Scheme returns all kinds that the controller reads or writes, with gangs in the given API. Kubernetes' groups are
// listed, because client-go's list has the native PodGroups, and a Go type has one name in a scheme.
func Scheme(api gangapi.API) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, batchv1.AddToScheme, schedulingv1.AddToScheme, resourcev1.AddToScheme, coordinationv1.AddToScheme,
		admissionregistrationv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, eventsv1.AddToScheme,
		api.AddToScheme(), jobsetv1alpha2.AddToScheme, trainerv1alpha1.AddToScheme, statev1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

// Run runs the controller until ctx ends. Its metrics are registered on registry.
func Run(ctx context.Context, options config.Options, registry prometheus.Registerer) error {
	restConfig, err := connect(options)
	if err != nil {
		return err
	}
	found, err := survey(ctx, restConfig, options, clock.RealClock{})
	if err != nil {
		return err
	}
	options = found.options
	measured := metrics.New(registry)
	measured.ClusterMode.WithLabelValues(string(found.offer.Mode)).Set(1)
	rivals := newRivals(found.clients, options, clock.RealClock{}, measured.Rival)
	mgr, keeper, err := newManager(restConfig, found, rivals)
	if err != nil {
		return err
	}
	if err = errors.Join(
		found.watchLost(mgr),
		found.watchChoice(mgr),
		found.moveGangs(mgr),
		found.answerKueue(mgr),
	); err != nil {
		return err
	}
	reconciler, err := found.newReconciler(mgr, measured)
	if err != nil {
		return err
	}
	if options.WebhookPort != 0 {
		if err = registerWebhooks(ctx, mgr, reconciler.Resolver, validatorOf(reconciler)); err != nil {
			return err
		}
	}
	var reports reporting
	if options.TrainJobStatus {
		if reports, err = addStatusServer(mgr, restConfig, keeper, options, registry); err != nil {
			return err
		}
		reconciler.Authority = reports.authority
	}
	census := metrics.NewCensus(trainjob.Census(ctx, mgr.GetClient(), reconciler.Class, mgr.Elected()))
	if err = registry.Register(census); err != nil {
		return fmt.Errorf("registering the census of TrainJobs: %w", err)
	}
	if err = reconciler.SetupWithManager(ctx, mgr, options.Workers); err != nil {
		return err
	}
	return reports.run(ctx, mgr)
}

// newReconciler returns the reconciler of TrainJobs, without the authority of a status server.
func (s surveyed) newReconciler(mgr ctrl.Manager, measured *metrics.Controller) (*trainjob.Reconciler, error) {
	nodes, levels, err := foreknowledge(mgr, s.options)
	if err != nil {
		return nil, err
	}
	return &trainjob.Reconciler{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Resolver: resolve.New(mgr.GetClient(), mgr.GetAPIReader(), s.options.Namespace),
		//nolint:staticcheck // Events of the newer API have no firstTimestamp, and Kubeflow's SDK drops those
		Recorder: mgr.GetEventRecorderFor("lockstep-controller"),
		Clock:    clock.RealClock{},
		Metrics:  measured,
		Options:  planningFor(s.options, s.offer),
		Class:    s.options.Class(),
		Nodes:    nodes,
		Levels:   levels,
		Kinds:    servedkinds.Kinds{Discovery: s.clients.Discovery()},
	}, nil
}

// validatorOf returns the validator that refuses the jobs that the reconciler would.
func validatorOf(r *trainjob.Reconciler) *admission.Validator {
	return &admission.Validator{
		Class: r.Class, Runtimes: r.Resolver, JobSets: r.Client, Live: r.Live,
		Nodes: r.Nodes, Levels: r.Levels, Kinds: r.Kinds, Options: r.Options,
	}
}

// foreknowledge returns the checks that find pods that cannot run before they are created: no node holds them, or their
// namespace refuses them.
func foreknowledge(mgr ctrl.Manager, options config.Options) (nodefit.Nodes, podsecurity.Levels, error) {
	levels, err := podsecurity.New(mgr.GetAPIReader(), clock.RealClock{})
	return nodefit.Nodes{
		Cache: mgr.GetClient(), Live: mgr.GetAPIReader(), Shapes: options.NodeShapes, Complete: options.NodesComplete,
	}, levels, err
}

// planningFor returns the planner's options that the administrator and the cluster set for all jobs.
func planningFor(options config.Options, offer probe.Offer) plan.Options {
	planning := plan.Options{
		Gang:             options.GangDefault == "on",
		GangAPI:          offer.API,
		KeepsConstraints: offer.Constraints(),
		KeepsClaims:      offer.Claims(),
		ComputeDomains:   offer.ComputeDomains,
	}
	if options.TrainJobStatus {
		planning.StatusServer = &plan.StatusServer{URL: statusServerURL(options)}
	}
	return planning
}

func connect(options config.Options) (*rest.Config, error) {
	load := clientconfig.GetConfig
	if options.Kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", options.Kubeconfig) }
	}
	restConfig, err := load()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoConfig, err)
	}
	restConfig.QPS, restConfig.Burst = options.QueriesPerSecond, options.Burst
	return restConfig, nil
}

// newManager builds the manager, and the keeper of the webhooks' certificate if Lockstep manages it.
func newManager(
	restConfig *rest.Config, found surveyed, rivals *rivals,
) (ctrl.Manager, *certificate.Keeper, error) {
	options := found.options
	scheme, err := Scheme(found.offer.API)
	if err != nil {
		return nil, nil, err
	}
	settings := ctrl.Options{
		Scheme:                 scheme,
		Cache:                  cacheOptions(options),
		HealthProbeBindAddress: options.HealthProbeBindAddress,
		// controller-runtime's default, but the Deployment's grace period counts on it.
		GracefulShutdownTimeout: new(ending),
	}
	if err = compete(&settings, restConfig, options, rivals); err != nil {
		return nil, nil, err
	}
	var keeper *certificate.Keeper
	if options.WebhookPort != 0 {
		if settings.WebhookServer, keeper, err = newWebhooks(restConfig, scheme, options); err != nil {
			return nil, nil, err
		}
	}
	settings.Metrics = newMetrics(options, keeper)
	mgr, err := ctrl.NewManager(restConfig, settings)
	if err != nil {
		return nil, nil, fmt.Errorf("building the manager: %w", err)
	}
	if rivals != nil {
		if err = mgr.Add(rivals); err != nil {
			return nil, nil, fmt.Errorf("adding the watch of Kubeflow Trainer: %w", err)
		}
	}
	if keeper != nil {
		if err = mgr.Add(keeper); err != nil {
			return nil, nil, fmt.Errorf("adding the keeper of the certificate: %w", err)
		}
	}
	if err = mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return nil, nil, fmt.Errorf("adding healthz: %w", err)
	}
	return mgr, keeper, addReadiness(mgr, settings.WebhookServer, keeper)
}

// cacheOptions strips managed fields, except the managers of ConfigMaps, and all of nodes except their resources. The
// cache reads only namespaces that the controller's roles permit: its own for frozen state, and those that it serves
// for the rest.
func cacheOptions(options config.Options) cache.Options {
	settings := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&statev1alpha1.FrozenTrainJob{}: {Namespaces: map[string]cache.Config{options.Namespace: {}}},
			&corev1.ConfigMap{}:             {Transform: trainjob.KeepManagers},
			&corev1.Node{}:                  {Transform: nodefit.Keep},
		},
	}
	if len(options.Namespaces) > 0 {
		settings.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range options.Namespaces {
			settings.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return settings
}

// addReadiness makes a replica ready when its caches are filled and its webhooks, if there are any, answer with a
// certificate. It need not be the leader.
func addReadiness(mgr ctrl.Manager, server webhook.Server, keeper *certificate.Keeper) error {
	checks := map[string]healthz.Checker{"caches": func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), readyPatience)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errNotSynced
		}
		return nil
	}}
	if server != nil {
		checks["webhooks"] = server.StartedChecker()
	}
	if keeper != nil {
		checks["webhooks"] = func(request *http.Request) error {
			// Asking the server before there is a certificate only makes it log a failed handshake.
			if _, err := keeper.GetCertificate(nil); err != nil {
				return err
			}
			return server.StartedChecker()(request)
		}
	}
	for name, check := range checks {
		if err := mgr.AddReadyzCheck(name, check); err != nil {
			return fmt.Errorf("adding %s to readyz: %w", name, err)
		}
	}
	return nil
}
