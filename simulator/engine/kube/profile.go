package kube

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/scheduler"
	configuration "github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
)

// native is the stock profile, with its generator of placements in an order that can be had again, and ties between
// them broken by that order. The two digits of the tie breakers count less than one point of any stock score.
const native = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: ` + nativeName + `
  plugins:
    placementGenerate:
      disabled: [{name: "*"}]
      enabled: [{name: ` + orderedName + `}]
    placementScore:
      disabled: [{name: "*"}]
      enabled:
      - {name: NodeResourcesFit, weight: 10201}
      - {name: PodGroupPodsCount, weight: 10201}
      - {name: ` + tieHighName + `, weight: 101}
      - {name: ` + tieLowName + `, weight: 1}
`

// nativeName is the schedulerName of the pods that the stock profile schedules.
const nativeName = "native-tas"

// parts are those of a scheduler.
type parts struct {
	config   *schedulerconfig.KubeSchedulerConfiguration
	registry frameworkruntime.Registry
	// waiting is our plugins' queue, nil for a scheduler without.
	waiting *waiting.Queue
	// name is the schedulerName of its pods.
	name string
}

// partsOf are those of a profile.
func partsOf(o Options, t timing.Timing, seed uint64, b *bindings) (parts, error) {
	out := parts{name: scheduler.ProfileName}
	text := chart.Profile()
	if o.Profile == Native {
		out.name, text, out.registry = nativeName, []byte(native), ties(seed)
	} else {
		out.registry, out.waiting = scheduler.Plugins(t)
	}
	config, err := stepped.Config(text)
	if err != nil {
		return parts{}, err
	}
	if o.Discipline != "" || o.Learns {
		configure(config, o)
	}
	own := schedulerconfig.Plugin{Name: bindingsName}
	plugins := config.Profiles[0].Plugins
	plugins.Permit.Enabled = append(plugins.Permit.Enabled, own)
	plugins.PostBind.Enabled = append(plugins.PostBind.Enabled, own)
	out.config, out.registry[bindingsName] = config, b.make
	return out, nil
}

// configure gives the profile's GangPlacement the arguments of the options.
func configure(config *schedulerconfig.KubeSchedulerConfiguration, o Options) {
	args := &runtime.Unknown{Raw: fmt.Appendf(nil, `{"queueing":{"discipline":%q},"learnRunTimes":%t}`,
		cmp.Or(o.Discipline, configuration.Promise), o.Learns), ContentType: runtime.ContentTypeJSON}
	of := slices.DeleteFunc(config.Profiles[0].PluginConfig, func(c schedulerconfig.PluginConfig) bool {
		return c.Name == gangplacement.Name
	})
	config.Profiles[0].PluginConfig = append(of, schedulerconfig.PluginConfig{Name: gangplacement.Name, Args: args})
}
