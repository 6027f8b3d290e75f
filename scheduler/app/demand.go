package app

import (
	"errors"
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	serverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/pkg/features"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	configuration "github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/demand"
	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
)

// errSynchronous indicates that the scheduler cannot prevent members of gangs from being Unschedulable.
var errSynchronous = errors.New(
	"argument demand.mode of GangPlacement needs feature gate SchedulerAsyncAPICalls; leave the gate on, or the mode at pods",
)

// demandOf returns the way in which waiting gangs are reported to node autoscalers, of the first profile that sets it.
func demandOf(profiles []schedulerconfig.KubeSchedulerProfile) (configuration.Demand, error) {
	for i := range profiles {
		for _, of := range profiles[i].PluginConfig {
			if of.Name != gangplacement.Name {
				continue
			}
			args, err := configuration.Placement(of.Args)
			if err != nil {
				return configuration.Demand{}, fmt.Errorf("reading the arguments of %s: %w", gangplacement.Name, err)
			}
			if args.Demand.Mode != configuration.DemandPods {
				return args.Demand, nil
			}
		}
	}
	return configuration.Demand{Mode: configuration.DemandPods}, nil
}

// report has gangs that wait reported to node autoscalers: by the scheduler's own words, and by the Requester that is
// returned, nil for none.
func report(
	of configuration.Demand,
	config *serverconfig.CompletedConfig,
	scheduler *kubescheduler.Scheduler,
	api gangapi.API,
	leads func() bool,
) (*demand.Requester, error) {
	if of.Mode == configuration.DemandPods {
		return nil, nil
	}
	if !utilfeature.DefaultFeatureGate.Enabled(features.SchedulerAsyncAPICalls) {
		return nil, errSynchronous
	}
	scheduler.FailureHandler = demand.Hide(scheduler.FailureHandler)
	if of.Mode == configuration.DemandNone {
		return nil, nil
	}
	client, err := keeperClient(config.KubeConfig, api)
	if err != nil {
		return nil, err
	}
	own := rest.CopyConfig(config.KubeConfig)
	own.RateLimiter, own.QPS, own.Burst = nil, keeperQPS, keeperBurst
	own.ContentType, own.AcceptContentTypes = "", "" // ProvisioningRequests are custom resources: JSON
	requests, err := dynamic.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("making a client of ProvisioningRequests: %w", err)
	}
	cluster := demand.Cluster{Client: client, Dynamic: requests, API: api, Clock: clock.RealClock{}}
	requester, err := demand.New(cluster, config.InformerFactory, of.Class, leads)
	if err != nil {
		return nil, fmt.Errorf("preparing to request nodes: %w", err)
	}
	return requester, nil
}
