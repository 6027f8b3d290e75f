package schedulertest

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/app"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// Config returns the shipped configuration, decoded strictly, and sets the feature gates that the binary sets.
func Config(tb testing.TB) *schedulerconfig.KubeSchedulerConfiguration {
	tb.Helper()
	if err := app.SetGates(
		utilfeature.DefaultMutableFeatureGate,
		probe.Offer{Mode: probe.Full, DeviceTaintRules: true},
	); err != nil {
		tb.Fatal(err)
	}
	return decode(tb, chart.Profile())
}

// NativeConfig returns kube-scheduler's default configuration for pods of our scheduler name. It sets the two feature
// gates that gangs and their topology need, and resets all others to upstream's defaults.
func NativeConfig(tb testing.TB) *schedulerconfig.KubeSchedulerConfiguration {
	tb.Helper()
	gates := map[string]bool{}
	upstream := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
	for name := range upstream.GetAll() {
		if now := utilfeature.DefaultFeatureGate.Enabled(name); now != upstream.Enabled(name) {
			gates[string(name)] = !now
		}
	}
	gates[string(features.GenericWorkload)], gates[string(features.TopologyAwareWorkloadScheduling)] = true, true
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		tb.Fatal(err)
	}
	return decode(tb, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"profiles:\n- schedulerName: "+scheduler.ProfileName+"\n"))
}

// decode reads a configuration strictly.
func decode(tb testing.TB, text []byte) *schedulerconfig.KubeSchedulerConfiguration {
	tb.Helper()
	object, _, err := configscheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	config, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		tb.Fatalf("the configuration is a %T", object)
	}
	return config
}

// Registry returns the factories of Lockstep's plugins.
func Registry(c clock.WithDelayedExecution) frameworkruntime.Registry {
	return scheduler.Registry(timing.With(c))
}

// PrependPlugin registers a plugin of the test and enables it before all others at its extension points. A plugin with
// a method SetHandle(fwk.Handle) gets the framework's handle.
func PrependPlugin(
	config *schedulerconfig.KubeSchedulerConfiguration, registry frameworkruntime.Registry, plugin fwk.Plugin,
) {
	registry[plugin.Name()] = func(_ context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		if p, ok := plugin.(interface{ SetHandle(handle fwk.Handle) }); ok {
			p.SetHandle(handle)
		}
		return plugin, nil
	}
	all := &config.Profiles[0].Plugins.MultiPoint // plugins that are enabled at their own point only follow these
	all.Enabled = slices.Insert(all.Enabled, 0, schedulerconfig.Plugin{Name: plugin.Name()})
}

// Start starts a scheduler, and returns when it has listed all objects. The scheduler ends with the test, or at Stop.
func (c *Cluster) Start(tb testing.TB) {
	tb.Helper()
	c.StartFor(tb, c)
}

// StartFor is Start for a scheduler that talks to the API server through the client.
func (c *Cluster) StartFor(tb testing.TB, client kubernetes.Interface) {
	tb.Helper()
	c.StartScheduler(c.context(tb), tb, client, Config(tb), Registry(clock.RealClock{}))
}

// StartWithQueue is Start, and returns the waiting queue of the scheduler. Its leases end with the scheduler.
func (c *Cluster) StartWithQueue(tb testing.TB) *waiting.Queue {
	tb.Helper()
	registry, queue := scheduler.Plugins(timing.With(clock.RealClock{}))
	c.StartScheduler(c.context(tb), tb, c, Config(tb), registry)
	return queue
}

// context returns a context that Stop and the end of the test cancel.
func (c *Cluster) context(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	c.stop = cancel
	tb.Cleanup(cancel)
	return ctx
}

// Stop ends the scheduler that Start started.
func (c *Cluster) Stop() { c.stop() }

// Restart ends the scheduler and starts another one.
func (c *Cluster) Restart(tb testing.TB) {
	tb.Helper()
	c.Stop()
	c.Start(tb)
}

// StartScheduler starts a scheduler with any configuration and plugins. It ends with the context. The client is a fake
// one.
func (c *Cluster) StartScheduler(
	ctx context.Context, tb testing.TB, client kubernetes.Interface,
	config *schedulerconfig.KubeSchedulerConfiguration, registry frameworkruntime.Registry,
) {
	tb.Helper()
	informers := kubescheduler.NewInformerFactory(client, 0, nil)
	recorder := profile.RecorderFactory(func(string) events.EventRecorderLogger { return discardEvents{} })
	s, err := kubescheduler.New(ctx, client, informers, nil, recorder,
		kubescheduler.WithProfiles(config.Profiles...),
		kubescheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		kubescheduler.WithPodInitialBackoffSeconds(config.PodInitialBackoffSeconds),
		kubescheduler.WithPodMaxBackoffSeconds(config.PodMaxBackoffSeconds),
		kubescheduler.WithFrameworkOutOfTreeRegistry(registry))
	if err != nil {
		tb.Fatal(err)
	}
	c.plugins = s.Profiles[scheduler.ProfileName].ListPlugins()
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		tb.Fatal(err)
	}
	asked, ok := client.(fakeClient)
	if !ok {
		tb.Fatalf("a %T does not remember what it was asked", client)
	}
	waitForWatches(tb, asked)
	go s.Run(ctx)
}

// discardEvents is an event recorder that drops all Events.
type discardEvents struct{}

func (discardEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

func (d discardEvents) WithLogger(klog.Logger) events.EventRecorderLogger { return d }
