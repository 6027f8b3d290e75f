package stepped

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"
)

// Config reads a scheduler's configuration, with kube-scheduler's defaults.
func Config(text []byte) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	config, ok := decoded.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("the scheduler's configuration is a %T", decoded) //nolint:err113 // a fault of the build
	}
	return config, nil
}

// Parts are those of a scheduler.
type Parts struct {
	Client kubernetes.Interface
	// Informers are by an object of their kind. All others are never filled.
	Informers map[Object]*Informer
	Config    *schedulerconfig.KubeSchedulerConfiguration
	Plugins   frameworkruntime.Registry
	Clock     clock.WithTicker
}

// New returns a scheduler that decides one pod or gang with each call of ScheduleOne, and its queue.
func New(ctx context.Context, p Parts) (*kubescheduler.Scheduler, Queue, error) {
	factory := informers.NewSharedInformerFactory(p.Client, 0)
	for object, of := range p.Informers {
		factory.InformerFor(object, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return of })
	}
	sched, err := kubescheduler.New(ctx, p.Client, factory, nil,
		func(string) events.EventRecorderLogger { return Silent{} },
		kubescheduler.WithProfiles(p.Config.Profiles...),
		kubescheduler.WithClock(p.Clock),
		kubescheduler.WithParallelism(1),
		kubescheduler.WithPercentageOfNodesToScore(p.Config.PercentageOfNodesToScore),
		kubescheduler.WithPodInitialBackoffSeconds(p.Config.PodInitialBackoffSeconds),
		kubescheduler.WithPodMaxBackoffSeconds(p.Config.PodMaxBackoffSeconds),
		kubescheduler.WithFrameworkOutOfTreeRegistry(p.Plugins),
	)
	if err != nil {
		return nil, Queue{}, fmt.Errorf("making a scheduler: %w", err)
	}
	queue, err := look(sched.SchedulingQueue)
	return sched, queue, err
}
