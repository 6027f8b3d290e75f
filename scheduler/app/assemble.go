package app

import (
	"context"
	"fmt"
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	serverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler"
	configuration "github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/demand"
	"github.com/lockstep-project/lockstep/scheduler/dialects"
	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/podgrouper"
	"github.com/lockstep-project/lockstep/scheduler/podgroups"
)

// assembled is a kube-scheduler that is ready to run.
type assembled struct {
	config    *serverconfig.CompletedConfig
	scheduler *kubescheduler.Scheduler
	keeper    *podgroups.Keeper
	grouper   *podgrouper.Grouper
	// requester reports gangs that wait to node autoscalers; nil for none.
	requester *demand.Requester
}

// assemble makes a kube-scheduler of its options, with our plugins, and with a client whose PodGroups are in an API.
// kube-scheduler's own command makes its client itself; here all reads and writes of gangs use this one.
func assemble(
	ctx context.Context, opts *options.Options, api gangapi.API,
) (assembled, error) {
	config, err := configure(ctx, opts)
	if err != nil {
		return assembled{}, err
	}
	var aliases map[string]string
	config.ComponentConfig.Profiles, aliases = merged(config.ComponentConfig.Profiles)
	natives, err := nativesOf(config.KubeConfig, api)
	if err != nil {
		return assembled{}, err
	}
	marks, err := marksOf(config.ComponentConfig.Profiles, aliases, natives)
	if err != nil {
		return assembled{}, err
	}
	if err = useClient(config, api, marks); err != nil {
		return assembled{}, err
	}
	keeping, err := keeperClient(config.KubeConfig, api)
	if err != nil {
		return assembled{}, err
	}
	leader := &leading{}
	leader.follow(config.LeaderElection)
	ended := members.NewEnded(aliases)
	registry, err := scheduler.Produce(leader.leads.Load, ended)
	if err != nil {
		return assembled{}, err
	}
	keeper, err := podgroups.New(keeping, config.InformerFactory, api, leader.leads.Load)
	if err != nil {
		return assembled{}, err
	}
	grouper, err := newGrouper(config, api, marks, ended, leader.leads.Load)
	if err != nil {
		return assembled{}, err
	}
	toAutoscalers, err := demandOf(config.ComponentConfig.Profiles)
	if err != nil {
		return assembled{}, err
	}
	completed := config.Complete()
	made, err := makeScheduler(ctx, &completed, opts, registry)
	if err != nil {
		return assembled{}, err
	}
	requester, err := report(toAutoscalers, &completed, made, api, leader.leads.Load)
	return assembled{
		config: &completed, scheduler: made, keeper: keeper, grouper: grouper, requester: requester,
	}, err
}

// useClient gives the scheduler the client whose PodGroups are in the API, and informers of it.
func useClient(config *serverconfig.Config, api gangapi.API, marks *dialects.Reader) error {
	client, err := gangapi.ClientWith(config.KubeConfig, api, marks.Reading())
	if err != nil {
		return err
	}
	// Only now: options with a name make informers of their own under it.
	name, err := cache.NewInformerName("kube-scheduler")
	if err != nil {
		return fmt.Errorf("naming the informers: %w", err)
	}
	config.Client, config.InformerFactory = client, kubescheduler.NewInformerFactory(client, 0, name)
	groups := config.InformerFactory.Scheduling().V1beta1().PodGroups().Lister()
	client.ReadFrom(func(namespace, name string) *schedulingv1beta1.PodGroup {
		group, err := groups.PodGroups(namespace).Get(name)
		if err != nil {
			return nil
		}
		return group
	})
	return nil
}

// configure reads the configuration that options name.
func configure(ctx context.Context, opts *options.Options) (*serverconfig.Config, error) {
	var err error
	if opts.ComponentConfig, err = latest.Default(); err != nil {
		return nil, fmt.Errorf("making the default configuration: %w", err)
	}
	if faults := opts.Validate(); len(faults) > 0 {
		return nil, fmt.Errorf("checking the options: %w", utilerrors.NewAggregate(faults))
	}
	config, err := opts.Config(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	logLimits(klog.FromContext(ctx), config.KubeConfig)
	return config, nil
}

// marksOf returns the reader of the marks of pods that name one of the profiles. All profiles read the dialects of the
// first that configures some. natives precede all others.
func marksOf(
	profiles []schedulerconfig.KubeSchedulerProfile, aliases map[string]string, natives dialects.Table,
) (*dialects.Reader, error) {
	var names []string
	var args configuration.GangPlacementArgs
	for i := range profiles {
		names = append(names, profiles[i].SchedulerName)
		for _, of := range profiles[i].PluginConfig {
			if of.Name != gangplacement.Name || len(args.Dialects) > 0 {
				continue
			}
			var err error
			if args, err = configuration.Placement(of.Args); err != nil {
				return nil, fmt.Errorf("reading the arguments of %s: %w", gangplacement.Name, err)
			}
		}
	}
	table, err := args.Table()
	if err != nil {
		return nil, fmt.Errorf("reading the arguments of %s: %w", gangplacement.Name, err)
	}
	return dialects.NewReader(slices.Concat(natives, table), names, aliases), nil
}

// nativesOf returns the dialect of Kubernetes' own groups, if gangs are stored in another API and the API server serves
// these too.
func nativesOf(config *rest.Config, api gangapi.API) (dialects.Table, error) {
	if api != gangapi.Resources {
		return nil, nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of what is served: %w", err)
	}
	for _, version := range dialects.NativeVersions() {
		served, err := client.ServerResourcesForGroupVersion(gangapi.Native.Version().Group + "/" + version)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("asking whether PodGroups are served: %w", err)
		}
		isGroup := func(resource metav1.APIResource) bool { return resource.Name == gangapi.Plural }
		if err == nil && slices.ContainsFunc(served.APIResources, isGroup) {
			return dialects.Table{dialects.Native(version)}, nil
		}
	}
	return nil, nil
}

// newGrouper makes the grouper of marked pods, with a client of its own: a tenant that creates many groups takes
// nothing of the requests of a scheduler, nor of the keeper of PodGroups.
func newGrouper(
	config *serverconfig.Config,
	api gangapi.API,
	marks *dialects.Reader,
	ended *members.Ended,
	leads func() bool,
) (*podgrouper.Grouper, error) {
	client, err := keeperClient(config.KubeConfig, api)
	if err != nil {
		return nil, err
	}
	own := rest.CopyConfig(config.KubeConfig)
	own.RateLimiter, own.QPS, own.Burst = nil, keeperQPS, keeperBurst
	own.ContentType, own.AcceptContentTypes = "", "" // the kinds behind marks are custom resources: JSON
	objects, err := dynamic.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("making a client of the objects behind marks: %w", err)
	}
	grouper, err := podgrouper.New(podgrouper.Cluster{
		Client:   client,
		Objects:  podgrouper.Objects{Dynamic: objects, Discovery: client.Discovery()},
		API:      api,
		Factory:  config.InformerFactory,
		Ended:    ended,
		Recorder: config.EventBroadcaster.NewRecorder("lockstep-scheduler"),
		Clock:    clock.RealClock{},
	}, marks, leads)
	if err != nil {
		return nil, fmt.Errorf("preparing to group marked pods: %w", err)
	}
	return grouper, nil
}

// keeperClient is a client of its own for the keeper of PodGroups: the work of the API server and
// kube-controller-manager for native groups takes nothing of a scheduler's requests, and neither must this.
func keeperClient(config *rest.Config, api gangapi.API) (kubernetes.Interface, error) {
	own := rest.CopyConfig(config)
	own.RateLimiter, own.QPS, own.Burst = nil, keeperQPS, keeperBurst
	return gangapi.Client(own, api)
}

// The requests a second of the keeper of PodGroups, and its burst: enough for a hundred users that submit in the same
// second.
const (
	keeperQPS   = 50
	keeperBurst = 100
)

func makeScheduler(
	ctx context.Context, config *serverconfig.CompletedConfig, opts *options.Options, registry runtime.Registry,
) (*kubescheduler.Scheduler, error) {
	component := &config.ComponentConfig
	var profiles []schedulerconfig.KubeSchedulerProfile
	made, err := kubescheduler.New(ctx, config.Client, config.InformerFactory, config.DynInformerFactory,
		func(name string) events.EventRecorderLogger { return config.EventBroadcaster.NewRecorder(name) },
		kubescheduler.WithComponentConfigVersion(component.APIVersion),
		kubescheduler.WithKubeConfig(config.KubeConfig),
		kubescheduler.WithProfiles(component.Profiles...),
		kubescheduler.WithPercentageOfNodesToScore(component.PercentageOfNodesToScore),
		kubescheduler.WithFrameworkOutOfTreeRegistry(registry),
		kubescheduler.WithPodInitialBackoffSeconds(component.PodInitialBackoffSeconds),
		kubescheduler.WithPodMaxBackoffSeconds(component.PodMaxBackoffSeconds),
		kubescheduler.WithPodMaxInUnschedulablePodsDuration(config.PodMaxInUnschedulablePodsDuration),
		kubescheduler.WithExtenders(component.Extenders...),
		kubescheduler.WithParallelism(component.Parallelism),
		kubescheduler.WithBuildFrameworkCapturer(func(profile schedulerconfig.KubeSchedulerProfile) {
			profiles = append(profiles, profile)
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	if err := options.LogOrWriteConfig(klog.FromContext(ctx), opts.WriteConfigTo, component, profiles); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return made, nil
}
