package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// Validate returns the faults of a job on its runtime; empty if New would render it.
func Validate(job *trainerv1alpha1.TrainJob, runtime Runtime, options Options) field.ErrorList {
	return NewDraft(job, runtime, options).Faults()
}

func (d *draft) validate(options Options) field.ErrorList {
	spec := field.NewPath("spec")
	var faults field.ErrorList
	faults = append(faults, d.validateInitializers()...)
	faults = append(faults, validatePatches(d.job.Spec.RuntimePatches, d.runtime)...)
	faults = append(faults, d.framework.Validate(d.input, spec)...)
	faults = append(faults, d.checkNumbers(spec, faults)...)
	faults = append(faults, d.checkClaims()...)
	faults = append(faults, d.checkForeign()...)
	faults = append(faults, d.checkSwitches()...)
	faults = append(faults, d.checkUnserved(options)...)
	faults = append(faults, d.checkSweep()...)
	faults = append(faults, d.checkMNNVL(options)...)
	faults = append(faults, d.checkDisruption()...)
	faults = append(faults, d.checkElastic()...)
	faults = append(faults, d.checkSlices()...)
	faults = append(faults, d.checkScheduling()...)
	return append(faults, d.checkGangs()...)
}

// checkNumbers requires at least one node and one process, unless they already have another fault.
func (d *draft) checkNumbers(spec *field.Path, known field.ErrorList) field.ErrorList {
	const least = "must be at least 1"
	var faults field.ErrorList
	processes := spec.Child("trainer", "numProcPerNode")
	said := slices.ContainsFunc(known, func(fault *field.Error) bool { return fault.Field == processes.String() })
	if given := trainerOf(d.job).NumProcPerNode; given != nil && *given < 1 && !said {
		faults = append(faults, field.Invalid(processes, *given, least))
	}
	if given := trainerOf(d.job).NumNodes; given != nil && *given < 1 {
		return append(faults, field.Invalid(spec.Child("trainer", "numNodes"), *given, least))
	}
	if d.input.Nodes < 1 {
		faults = append(faults, field.Invalid(runtimePath(), d.runtime.Name,
			fmt.Sprintf("its mlPolicy.numNodes is %d, and %s", d.input.Nodes, least)))
	}
	return faults
}
