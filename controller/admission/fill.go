package admission

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/sizing"
	"github.com/lockstep-project/lockstep/topology"
)

// Offers returns the GPUs of the nodes, a value that an informer's events update: a webhook reads no nodes. Nil is a
// fleet that is not known.
type Offers func() sizing.Fleet

func (o Offers) fleet() sizing.Fleet {
	if o == nil {
		return sizing.Fleet{}
	}
	return o()
}

// fill completes a new job that asks for automatic resources. It returns a job without an answer unchanged: the
// validator refuses that, with the reason.
func (d *Defaulter) fill(ctx context.Context, change Change, next []byte) ([]byte, error) {
	if len(change.Old) > 0 || d.Runtimes == nil {
		return next, nil
	}
	job, err := decoded(next)
	if err != nil {
		return nil, err
	}
	job.Namespace = change.Namespace
	found, err := d.Runtimes.Current(ctx, job)
	if err != nil {
		return next, nil //nolint:nilerr // the validator tells
	}
	return Fill(next, found.Runtime, d.Offers.fleet())
}

// Fill returns a new job, as JSON, with automatic resources filled in, if it asks for them and there is an answer. The
// error is an ErrMalformed.
func Fill(raw []byte, on plan.Runtime, fleet sizing.Fleet) ([]byte, error) {
	job, err := decoded(raw)
	if err != nil {
		return nil, err
	}
	filled, _ := plan.Fill(job, on, fleet)
	if filled == nil {
		return raw, nil
	}
	tree, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return complete(tree, *filled)
}

// decoded reads a job.
func decoded(raw []byte) (*trainerv1alpha1.TrainJob, error) {
	job := &trainerv1alpha1.TrainJob{}
	if err := json.Unmarshal(raw, job); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return job, nil
}

// complete writes automatic resources into a job. Its other fields are preserved.
func complete(tree map[string]any, filled plan.Filled) ([]byte, error) {
	spec := object(tree, "spec")
	if spec == nil {
		spec = map[string]any{}
		tree["spec"] = spec
	}
	trainer := object(spec, "trainer")
	if trainer == nil {
		trainer = map[string]any{}
		spec["trainer"] = trainer
	}
	resources, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&filled.Resources)
	if err != nil {
		return nil, fmt.Errorf("printing resourcesPerNode: %w", err)
	}
	patch, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&filled.Patch)
	if err != nil {
		return nil, fmt.Errorf("printing the runtime patch of %s: %w", filled.Patch.Manager, err)
	}
	trainer["numNodes"], trainer["resourcesPerNode"] = filled.Nodes, resources
	patches, _ := spec["runtimePatches"].([]any)
	if i := managed(patches, plan.AutoManager); i >= 0 { // of the job that this one was copied from
		patches = append(append([]any{}, patches[:i]...), patches[i+1:]...)
	}
	spec["runtimePatches"] = append(append([]any{}, patches...), patch)
	out, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("printing the TrainJob: %w", err)
	}
	return out, nil
}

// managed is the index of a manager's entry, or -1.
func managed(patches []any, manager string) int {
	for i, patch := range patches {
		if entry, ok := patch.(map[string]any); ok && entry["manager"] == manager {
			return i
		}
	}
	return -1
}

// retained restores the entry for automatic resources where a client that did not know of it left it out: kubectl apply
// replaces lists. It is dropped once the job's annotation changes.
func retained(had, wanted []any, before, after map[string]any) []any {
	i := managed(had, plan.AutoManager)
	if i < 0 || managed(wanted, plan.AutoManager) >= 0 || asksAuto(before) != asksAuto(after) {
		return wanted
	}
	at := min(i, len(wanted))
	out := append([]any{}, wanted[:at]...)
	return append(append(out, had[i]), wanted[at:]...)
}

// asksAuto is the annotation of a job for automatic resources.
func asksAuto(tree map[string]any) any {
	return object(tree, "metadata", "annotations")[topology.AnnotationAutoResources]
}

// checkFilled refuses a new job whose resources could not be filled in, with the reason.
func (v *Validator) checkFilled(job *trainerv1alpha1.TrainJob, on plan.Runtime) *field.Error {
	return plan.AutoFault(job, on, v.Offers.fleet())
}
