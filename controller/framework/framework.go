package framework

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// A Framework configures the processes of one job to find each other.
type Framework interface {
	// Name is the framework's name in metrics and events.
	Name() string
	// Selects reports whether the framework is responsible for runtimes with this policy.
	Selects(policy trainerv1alpha1.MLPolicySource) bool
	// Validate checks the rules that only the framework can check; spec is the path of the TrainJob's spec.
	Validate(input Input, spec *field.Path) field.ErrorList
	// Contribute returns the framework's additions to a job that Validate found no fault with.
	Contribute(input Input) Contribution
}

// Sizer is a Framework that sets the number of pods in each Job of a ReplicatedJob. The others follow the rule that the
// trainer's Job has one pod for each node of the job.
type Sizer interface {
	Pods(input Input, role Role) int32
}

// Elastic is a Framework with trainings that continue when nodes join or leave.
type Elastic interface {
	Framework
	// Elastic does nothing: it marks the Framework.
	Elastic()
}

// All lists the frameworks in the order in which they are tried. Plain is last: it selects everything.
func All() []Framework {
	return []Framework{Torch{}, TorchTune{}, JAX{}, XGBoost{}, MPI{}, Flux{}, Plain{}}
}

// Select returns the framework that is responsible for a runtime's policy and a job's command.
func Select(policy trainerv1alpha1.MLPolicySource, command []string) Framework {
	if policy.Torch != nil && tunes(command) {
		return TorchTune{}
	}
	for _, candidate := range All() {
		if candidate.Selects(policy) {
			return candidate
		}
	}
	return Plain{}
}

// Suffixes returns the suffixes of all ConfigMaps and Secrets that frameworks create for jobs: those of a job whose
// framework is no longer known may be left over.
func Suffixes() (files, secrets []string) {
	return []string{mpiHosts, fluxScripts}, []string{mpiKeys, fluxCurve}
}
