package app

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/defaultpreemption"
	"github.com/lockstep-project/lockstep/scheduler/gangpermit"
	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
)

// ConfigError is returned by the command if its configuration file cannot be used. Its text names the file and the
// field.
type ConfigError struct {
	// File is the file's name.
	File string
	// Err is the fault.
	Err error
}

func (e *ConfigError) Error() string { return "configuration " + e.File + ": " + e.Err.Error() }

// Unwrap returns the fault.
func (e *ConfigError) Unwrap() error { return e.Err }

// check reads a configuration as kube-scheduler will, and the arguments of our plugins as they will. A mistake is
// better reported before the cluster is probed than in the middle of a start.
func check(content []byte) error {
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(content, nil, nil)
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	file, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return fmt.Errorf("it is a %T, not a KubeSchedulerConfiguration", object)
	}
	for i, profile := range file.Profiles {
		if unmarked(profile.Plugins) {
			return fmt.Errorf(
				"%s: %s does not mark its dry runs, and %s would take them for decisions: disable it under multiPoint, "+
					"and enable %s",
				field.NewPath("profiles").Index(i).Child("plugins"),
				names.DefaultPreemption,
				gangplacement.Name,
				defaultpreemption.Name,
			)
		}
		for j, plugin := range profile.PluginConfig {
			at := field.NewPath("profiles").Index(i).Child("pluginConfig").Index(j).Child("args")
			if err := checkArgs(plugin); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		}
	}
	if err := validation.ValidateKubeSchedulerConfiguration(file); err != nil {
		return fmt.Errorf("not valid: %w", err)
	}
	return nil
}

// unmarked reports whether a profile with GangPlacement has in-tree DefaultPreemption, which kube-scheduler enables
// unless the profile disables it: a configuration of an earlier release has both.
func unmarked(plugins *schedulerconfig.Plugins) bool {
	if plugins == nil {
		return false
	}
	has := func(name string, sets ...schedulerconfig.PluginSet) bool {
		return slices.ContainsFunc(sets, func(set schedulerconfig.PluginSet) bool {
			return slices.ContainsFunc(set.Enabled, func(p schedulerconfig.Plugin) bool { return p.Name == name })
		})
	}
	return has(gangplacement.Name, plugins.MultiPoint, plugins.PlacementGenerate) &&
		has(names.DefaultPreemption, plugins.MultiPoint, plugins.PodGroupPostFilter)
}

func checkArgs(plugin schedulerconfig.PluginConfig) error {
	var err error
	switch plugin.Name {
	case gangplacement.Name:
		_, err = config.Placement(plugin.Args)
	case gangpermit.Name:
		_, err = config.Permit(plugin.Args)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", plugin.Name, err)
	}
	return nil
}
