package trainjob

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// recorded reports whether the frozen state records this rendering as the last applied one.
func (p frozenPlan) recorded() bool { return p.state.Spec.Rendering.Digest == p.rendering.Digest }

// stands reports whether a JobSet equals the result of applying the plan's content, so that a controller that has just
// started need not apply it. It does if the frozen state records this rendering as the last applied one, so that the
// JobSet has no field of an earlier one, and the JobSet has all planned fields, so that no client has changed it since.
// Fields that other clients have added do not count: an apply leaves them.
func (p frozenPlan) stands(content *unstructured.Unstructured, there *jobsetv1alpha2.JobSet) (bool, error) {
	if !p.recorded() {
		return false, nil
	}
	found, err := runtime.DefaultUnstructuredConverter.ToUnstructured(there)
	if err != nil {
		return false, fmt.Errorf("converting %s: %w", describe(there), err)
	}
	return contains(found["metadata"], content.Object["metadata"]) &&
		contains(found["spec"], content.Object["spec"]), nil
}

// contains reports whether all that is planned is there: each field of an object, and each list from end to end,
// because lists with more in them may be lists that applying replaces whole.
func contains(there, planned any) bool {
	switch planned := planned.(type) {
	case map[string]any:
		found, ok := there.(map[string]any)
		for key, value := range planned {
			inner, exists := found[key]
			ok = ok && exists && contains(inner, value)
		}
		return ok
	case []any:
		found, ok := there.([]any)
		return ok && slices.EqualFunc(found, planned, contains)
	default:
		return there == planned
	}
}

// withdraw takes the rendering out of the frozen state before another one is applied to the JobSet that is there.
// Otherwise a controller that dies between the two would leave a JobSet that differs from its frozen state, and the
// next controller might trust the state.
func (r *Reconciler) withdraw(ctx context.Context, planned frozenPlan, there *jobsetv1alpha2.JobSet) error {
	last := planned.state.Spec.Rendering
	if there == nil || last.Digest == "" || planned.recorded() {
		return nil
	}
	return r.recordRendering(ctx, planned.state, statev1alpha1.Rendering{Renderer: last.Renderer})
}

// intact reports whether a ConfigMap, known by its metadata only, has not changed since it was applied: its digest is
// that of the wanted content, and only a controller of TrainJobs has written it.
func intact(have, want client.Object) bool {
	digest := want.GetAnnotations()[plan.AnnotationDigest]
	managers := have.GetManagedFields()
	return digest != "" && have.GetAnnotations()[plan.AnnotationDigest] == digest && len(managers) > 0 &&
		!slices.ContainsFunc(
			managers,
			func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager != fieldManager },
		)
}

// KeepManagers transforms objects of the cache: for the kinds whose managers intact reads, it retains the managers of
// an object, and not their fields.
func KeepManagers(object any) (any, error) {
	if found, ok := object.(metav1.Object); ok {
		managers := found.GetManagedFields()
		for i := range managers {
			managers[i].FieldsV1 = nil
		}
		found.SetManagedFields(managers)
	}
	return object, nil
}
