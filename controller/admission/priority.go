package admission

import (
	"context"
	"fmt"
	"slices"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkPriorityClass wants the class of a Volcano group to exist: Volcano would leave the group where it is, and say nothing.
// The error says why that cannot be told.
func (v *Validator) checkPriorityClass(ctx context.Context, name string) (*field.Error, error) {
	if slices.Contains([]string{"", "system-node-critical", "system-cluster-critical"}, name) {
		return nil, nil
	}
	err := v.Live.Get(ctx, client.ObjectKey{Name: name}, &schedulingv1.PriorityClass{})
	if apierrors.IsNotFound(err) {
		return field.Invalid(field.NewPath("spec", "templateSpec", "priorityClassName"), name,
			fmt.Sprintf("PriorityClass %q doesn't exist: %v", name, err)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting PriorityClass %s: %w", name, err)
	}
	return nil, nil
}
