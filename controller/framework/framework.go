package framework

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// A Framework tells the processes of one job about each other.
type Framework interface {
	// Name is the framework's name in metrics and events.
	Name() string
	// Selects reports whether the framework is responsible for runtimes with this policy.
	Selects(policy trainerv1alpha1.MLPolicySource) bool
	// Validate checks what only the framework can check; spec is the path of the TrainJob's spec.
	Validate(world World, spec *field.Path) field.ErrorList
	// Contribute returns what the framework wants added to a job that Validate found no fault with.
	Contribute(world World) Contribution
}

// Sizer is a Framework that decides how many pods each Job of a ReplicatedJob has. The others leave it to the rule that the
// trainer's has as many as the job has nodes.
type Sizer interface {
	Pods(world World, role Role) int32
}

// Elastic is a Framework whose trainings go on when nodes join them or leave.
type Elastic interface {
	Framework
	// Elastic does nothing: that it is there says so.
	Elastic()
}

// All lists the frameworks in the order in which they are asked. Plain is last: it selects everything.
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

// Suffixes are those of all ConfigMaps and Secrets that frameworks give jobs: what may be left of one whose framework nobody
// remembers.
func Suffixes() (files, secrets []string) {
	return []string{mpiHosts, fluxScripts}, []string{mpiKeys, fluxCurve}
}
