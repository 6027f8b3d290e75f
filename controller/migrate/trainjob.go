package migrate

import (
	"slices"
	"strconv"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// patchManager is the writer of the runtime patches that were overrides.
const patchManager = "lockstep.dev/migrate"

// trainJob migrates a TrainJob of Kubeflow Trainer 2.0 or 2.1. A TrainJob of today is returned unchanged.
func (p *page) trainJob() ([]map[string]any, error) {
	content := p.copyWithoutServer()
	patch, err := p.patch(content)
	if err != nil {
		return nil, err
	}
	if err := p.addPatch(content, patch); err != nil {
		return nil, err
	}
	if err := p.trainerProcesses(content); err != nil {
		return nil, err
	}
	p.trainJobManager(content)
	if err := p.fill(content, nil, &trainerv1alpha1.TrainJob{}); err != nil {
		return nil, err
	}
	return []map[string]any{content}, nil
}

// addPatch appends the patch to those that the job has. A nil patch is none.
func (p *page) addPatch(content, patch map[string]any) error {
	if patch == nil {
		return nil
	}
	where := at("spec", "runtimePatches")
	patches, _ := valueAt(content, where).([]any)
	for i, other := range patches {
		if valueAt(other, at("manager")) == patchManager {
			return p.bad(where.child(i), "the job has overrides and runtime patches of "+patchManager+" already",
				"move the overrides into that entry")
		}
	}
	spec, isMap := content["spec"].(map[string]any)
	if !isMap {
		return p.bad(at("spec"), "spec is not an object", "write the fields of a TrainJob below it")
	}
	spec["runtimePatches"] = append(slices.Clone(patches), patch)
	return nil
}

// trainerProcesses makes a number of numProcPerNode, which was a number or a word.
func (p *page) trainerProcesses(content map[string]any) error {
	where := at("spec", "trainer", "numProcPerNode")
	word, isText := valueAt(content, where).(string)
	if !isText {
		return nil
	}
	trainer, _ := valueAt(content, where[:2]).(map[string]any)
	number, err := p.processes(where, word)
	if err != nil {
		return err
	}
	delete(trainer, "numProcPerNode")
	if number != nil {
		trainer["numProcPerNode"] = int64(*number)
	}
	return nil
}

// processes reads a number of processes per node that is written as text. It is nil for torchrun's words, which need no
// setting any more.
func (p *page) processes(where path, word string) (*int32, error) {
	if number, err := strconv.ParseInt(word, 10, 32); err == nil && number > 0 {
		return new(int32(number)), nil
	}
	switch word {
	case "auto":
		p.note(where, "auto is left out: the controller counts the GPUs of a node, or its CPUs, itself")
	case "cpu", "gpu":
		p.note(where, word+" is left out: the controller counts the GPUs of a node, or its CPUs if the trainer's "+
			"resources (resourcesPerNode) ask for no GPU")
	default:
		return nil, p.bad(
			where,
			where.String()+" is "+strconv.Quote(word),
			"write a number above zero, or leave it out",
		)
	}
	return nil, nil
}

// trainJobManager drops names of controllers that a TrainJob cannot have any more.
func (p *page) trainJobManager(content map[string]any) {
	where := at("spec", "managedBy")
	said, _ := valueAt(content, where).(string)
	if said == "" || slices.Contains(managers(), said) {
		return
	}
	take(content, where)
	p.note(where, said+" is left out: Lockstep's controller is responsible")
}

// managers are the values that a TrainJob's managedBy may have.
func managers() []string {
	return []string{trainerv1alpha1.DefaultManagedBy, trainerv1alpha1.LockstepManagedBy, "kueue.x-k8s.io/multikueue"}
}
