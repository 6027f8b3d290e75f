// Package config holds the arguments of Lockstep's plugins in a KubeSchedulerConfiguration: versioned, defaulted,
// validated. A mistake stops the scheduler at its start, with the path of the field.
//
//	pluginConfig:
//	- name: GangPlacement
//	  args:
//	    apiVersion: scheduler.lockstep.dev/v1alpha1
//	    kind: GangPlacementArgs
//	    levels:
//	    - key: example.com/row
//	    - key: example.com/rack
//	      name: rack
//	      weight: 50
package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/scheduler/dialects"
	"github.com/lockstep-project/lockstep/topology"
)

// APIVersion is the version of the arguments.
const APIVersion = "scheduler.lockstep.dev/v1alpha1"

// GangPlacementArgs are the arguments of GangPlacement.
type GangPlacementArgs struct {
	metav1.TypeMeta `json:",inline"`
	// Levels are the topology levels of the fleet, outermost first. None: those of known label families that nodes
	// carry.
	Levels []Level `json:"levels,omitempty"`
	// Accelerators are the extended resources whose nodes are avoided by pods without accelerators. The default is
	// those of vendors' device plugins.
	Accelerators []string `json:"accelerators,omitempty"`
	// Leases says where reservations are written for the next scheduler: a ConfigMap. The default is
	// lockstep-system/lockstep-scheduler-leases.
	Leases Leases `json:"leases,omitzero"`
	// UnhealthyConditions are the node conditions that close a node to new pods; an empty list for none. The default is
	// those that node-problem-detector, AKS and EKS write on broken nodes (see package nodehealth).
	UnhealthyConditions []Condition `json:"unhealthyConditions"`
	// Quarantine configures how failures of pods close their nodes.
	Quarantine Quarantine `json:"quarantine,omitzero"`
	// Dialects are further ways in which controllers mark the members of a gang, beside those that are built in (see
	// package dialects). They hold for all profiles of the scheduler.
	Dialects []dialects.Row `json:"dialects,omitempty"`
	// Demand selects the way in which waiting gangs are reported to node autoscalers.
	Demand Demand `json:"demand,omitzero"`
	// Preemption says when the eviction of workloads of a lower priority pays.
	Preemption Preemption `json:"preemption,omitzero"`
	// Queueing says in which order the workloads of this profile start.
	Queueing Queueing `json:"queueing,omitzero"`
	// LearnRunTimes predicts the run times of workloads that declare none from those of such workloads that have
	// completed. It holds for the profiles that set it. The default is false.
	LearnRunTimes bool `json:"learnRunTimes,omitempty"`
}

// Condition is a node condition that says that something is wrong.
type Condition struct {
	Type string `json:"type"`
	// Status is True, or False for conditions whose names say that all is well. The default is True.
	Status string `json:"status,omitempty"`
}

// Quarantine closes a node after two strikes: a pod whose kubelet could not give it its devices, or a rank that failed.
type Quarantine struct {
	// HalfLife is the time in which a strike loses half its weight: a node with two strikes is closed for 0.4 of it. 0s
	// is no quarantine. The default is two hours.
	HalfLife *metav1.Duration `json:"halfLife,omitempty"`
	// MostPercent is the percentage of nodes that may be in quarantine at a time, at least one node. The default is 5.
	MostPercent *int32 `json:"mostPercent,omitempty"`
}

// Leases names the object to which reservations are written.
type Leases struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Level is a level of the fleet.
type Level struct {
	// Key is the node-label key.
	Key string `json:"key"`
	// Name is the display name of the level; the default is that of the known key, or the key's last part.
	Name string `json:"name,omitempty"`
	// Weight is the cost of an edge of communication across the level's boundary over one inside, in hundredths of an
	// edge between two nodes; the default is that of the known key, or 100.
	Weight *int64 `json:"weight,omitempty"`
}

// GangPermitArgs are the arguments of GangPermit.
type GangPermitArgs struct {
	metav1.TypeMeta `json:",inline"`
	// Grace limits the time in which no member of a starting gang makes progress. Then the start ends. The default is
	// one minute.
	Grace *metav1.Duration `json:"grace,omitempty"`
	// PreparationTimeout is the same while members get their devices and volumes. The default is twenty minutes:
	// in-tree plugins allow ten minutes for a volume, and ten for a device.
	PreparationTimeout *metav1.Duration `json:"preparationTimeout,omitempty"`
	// RepairTimeout limits the wait of a gang that ran for nodes for members that it lost. After it all of the gang is
	// evicted to start again as a whole; until then a node that returns is enough. The default is five minutes.
	RepairTimeout *metav1.Duration `json:"repairTimeout,omitempty"`
}

// Placement reads the arguments of GangPlacement; nil are the defaults.
func Placement(object runtime.Object) (GangPlacementArgs, error) {
	args := GangPlacementArgs{}
	if err := decode(object, &args, &args.TypeMeta); err != nil {
		return args, err
	}
	if args.Accelerators == nil {
		for _, name := range DefaultAccelerators() {
			args.Accelerators = append(args.Accelerators, string(name))
		}
	}
	args.Quarantine.HalfLife = cmp.Or(args.Quarantine.HalfLife, &metav1.Duration{Duration: defaultHalfLife})
	args.Quarantine.MostPercent = cmp.Or(args.Quarantine.MostPercent, new(int32(defaultMostPercent)))
	args.Demand.setDefaults()
	args.Preemption.setDefaults()
	args.Queueing.setDefaults()
	args.Leases.Namespace = cmp.Or(args.Leases.Namespace, "lockstep-system")
	args.Leases.Name = cmp.Or(args.Leases.Name, "lockstep-scheduler-leases")
	if faults := args.validate(); len(faults) > 0 {
		return args, fmt.Errorf("not valid: %w", faults.ToAggregate())
	}
	return args, nil
}

// DefaultAccelerators returns the extended resources that vendors' device plugins offer.
func DefaultAccelerators() []corev1.ResourceName {
	return []corev1.ResourceName{
		"nvidia.com/gpu",
		"amd.com/gpu",
		"gpu.intel.com/i915",
		"gpu.intel.com/xe",
		"habana.ai/gaudi",
		"google.com/tpu",
		"aws.amazon.com/neuron",
		"aws.amazon.com/neuroncore",
		"aws.amazon.com/neurondevice",
	}
}

func (a GangPlacementArgs) validate() field.ErrorList {
	var faults field.ErrorList
	seen := make(map[string]bool)
	for i, level := range a.Levels {
		at := field.NewPath("levels").Index(i)
		switch {
		case level.Key == "":
			faults = append(faults, field.Required(at.Child("key"), "a level is a node-label key"))
		case seen[level.Key]:
			faults = append(faults, field.Duplicate(at.Child("key"), level.Key))
		}
		seen[level.Key] = true
		if w := level.Weight; w != nil && (*w < 1 || *w > topology.MostWeight) {
			faults = append(faults, field.Invalid(at.Child("weight"), *w,
				fmt.Sprintf("it must be between 1 and %d", topology.MostWeight)))
		}
	}
	faults = slices.Concat(
		faults,
		a.validateHealth(),
		a.Demand.validate(),
		a.Preemption.validate(),
		a.Queueing.validate(),
	)
	if _, err := a.Table(); err != nil {
		faults = append(faults, field.Invalid(field.NewPath("dialects"), len(a.Dialects), err.Error()))
	}
	if len(faults) > 0 {
		return faults
	}
	if _, err := a.Ladder(); err != nil {
		faults = append(faults, field.Invalid(field.NewPath("levels"), len(a.Levels), err.Error()))
	}
	return faults
}

// Table returns the dialects, built in and configured, in the order in which they are read.
func (a GangPlacementArgs) Table() (dialects.Table, error) {
	table, owners := dialects.Builtin()
	for _, row := range a.Dialects {
		made, err := dialects.Configured(row)
		if err != nil {
			return nil, fmt.Errorf("reading a dialect: %w", err)
		}
		if _, taken := slices.Concat(dialects.Table{dialects.Native("")}, table, owners).ByName(made.Name); taken {
			return nil, fmt.Errorf("reading a dialect: name %s is taken: %w", made.Name, dialects.ErrRow)
		}
		table = append(table, made)
	}
	return slices.Concat(table, owners), nil
}

// Ladder returns the configured levels, nil if they are to be detected.
func (a GangPlacementArgs) Ladder() ([]topology.Level, error) {
	if len(a.Levels) == 0 {
		return nil, nil
	}
	keys := make([]string, len(a.Levels))
	for i, level := range a.Levels {
		keys[i] = level.Key
	}
	ladder, err := topology.Configured(keys)
	if err != nil {
		return nil, fmt.Errorf("reading the levels: %w", err)
	}
	for i := range ladder { // hostname, which may be last, is not among them
		if level := a.Levels[i]; level.Name != "" {
			ladder[i].Name = level.Name
		}
		if w := a.Levels[i].Weight; w != nil {
			ladder[i].Weight = *w
		}
	}
	if _, err := topology.NewTree(ladder, nil); err != nil {
		return nil, fmt.Errorf("reading the levels: %w", err)
	}
	return ladder, nil
}

// The defaults of the arguments.
const (
	defaultGrace              = time.Minute
	defaultPreparationTimeout = 20 * time.Minute
	defaultRepairTimeout      = 5 * time.Minute
	defaultHalfLife           = 2 * time.Hour
	defaultMostPercent        = 5
)

// Permit reads the arguments of GangPermit; nil are the defaults.
func Permit(object runtime.Object) (GangPermitArgs, error) {
	args := GangPermitArgs{}
	if err := decode(object, &args, &args.TypeMeta); err != nil {
		return args, err
	}
	if args.Grace == nil {
		args.Grace = &metav1.Duration{Duration: defaultGrace}
	}
	if args.PreparationTimeout == nil {
		args.PreparationTimeout = &metav1.Duration{Duration: defaultPreparationTimeout}
	}
	if args.RepairTimeout == nil {
		args.RepairTimeout = &metav1.Duration{Duration: defaultRepairTimeout}
	}
	faults := slices.Concat(
		atLeastASecond("grace", args.Grace),
		atLeastASecond("preparationTimeout", args.PreparationTimeout),
		atLeastASecond("repairTimeout", args.RepairTimeout),
	)
	if len(faults) > 0 {
		return args, fmt.Errorf("not valid: %w", faults.ToAggregate())
	}
	return args, nil
}

func atLeastASecond(name string, value *metav1.Duration) field.ErrorList {
	if value.Duration >= time.Second {
		return nil
	}
	return field.ErrorList{
		field.Invalid(field.NewPath(name), value.Duration.String(), "it must be a second or more"),
	}
}

// decode reads arguments strictly: kube-scheduler hands them over as they stand in the file.
func decode(object runtime.Object, into any, meta *metav1.TypeMeta) error {
	if object == nil {
		return nil
	}
	unknown, ok := object.(*runtime.Unknown)
	if !ok {
		return fmt.Errorf("arguments are a %T", object)
	}
	if len(unknown.Raw) == 0 {
		return nil
	}
	if err := yaml.UnmarshalStrict(unknown.Raw, into); err != nil {
		return fmt.Errorf("reading the arguments: %w", err)
	}
	if meta.APIVersion != "" && meta.APIVersion != APIVersion {
		return fmt.Errorf("not valid: %w",
			field.NotSupported(field.NewPath("apiVersion"), meta.APIVersion, []string{APIVersion}))
	}
	return nil
}
