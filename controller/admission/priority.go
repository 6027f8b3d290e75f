package admission

import (
	"context"
	"fmt"
	"slices"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// checkPriorityClasses requires the classes that a job depends on to exist: the one that it names itself, without which
// none of its pods could be created, and that of a Volcano group, which Volcano would leave pending without a message.
// The error is that of a failed read.
func (v *Validator) checkPriorityClasses(
	ctx context.Context, job *trainerv1alpha1.TrainJob, runtime plan.Runtime,
) (*field.Error, error) {
	named := plan.NamedPriorityClass(job, runtime)
	fault, err := v.checkPriorityClass(
		ctx,
		field.NewPath("metadata", "annotations").Key(topology.AnnotationPriorityClass),
		named,
	)
	if fault != nil || err != nil {
		return fault, err
	}
	if named != "" { // it is Volcano's, too
		return nil, nil
	}
	return v.checkPriorityClass(
		ctx,
		field.NewPath("spec", "templateSpec", "priorityClassName"),
		plan.PriorityClass(job, runtime),
	)
}

func (v *Validator) checkPriorityClass(ctx context.Context, at *field.Path, name string) (*field.Error, error) {
	if slices.Contains([]string{"", "system-node-critical", "system-cluster-critical"}, name) {
		return nil, nil
	}
	err := v.Live.Get(ctx, client.ObjectKey{Name: name}, &schedulingv1.PriorityClass{})
	if apierrors.IsNotFound(err) {
		return field.Invalid(at, name, fmt.Sprintf("PriorityClass %q doesn't exist: %v", name, err)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting PriorityClass %s: %w", name, err)
	}
	return nil, nil
}
