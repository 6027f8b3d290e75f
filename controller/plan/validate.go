package plan

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// Validate says what is wrong with a job on its runtime; empty if New would render it.
func Validate(job *trainerv1alpha1.TrainJob, runtime Runtime, options Options) field.ErrorList {
	draft, err := read(job, runtime, options)
	if refusal, ok := errors.AsType[*RefusalError](err); ok {
		return refusal.Faults
	}
	if err != nil {
		return field.ErrorList{field.Invalid(runtimePath(), runtime.Name, err.Error())}
	}
	return draft.validate(options)
}

func (d *draft) validate(options Options) field.ErrorList {
	spec := field.NewPath("spec")
	var faults field.ErrorList
	if nodes := trainerOf(d.job).NumNodes; nodes != nil && *nodes < 1 {
		faults = append(faults, field.Invalid(spec.Child("trainer", "numNodes"), *nodes, "must be at least 1"))
	}
	faults = append(faults, d.validateInitializers()...)
	faults = append(faults, validatePatches(d.job.Spec.RuntimePatches, d.runtime)...)
	faults = append(faults, d.framework.Validate(d.world, spec)...)
	faults = append(faults, d.checkForeign()...)
	faults = append(faults, d.checkSwitches()...)
	faults = append(faults, d.checkUnserved(options)...)
	if d.gang != nil {
		faults = append(faults, d.gang.faults...)
	}
	return faults
}
