package trainjob_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// ownPolicy is a runtime with rules for failures of its own.
func ownPolicy() *trainerv1alpha1.ClusterTrainingRuntime {
	rt := torch()
	rt.Spec.Template.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{
		MaxRestarts: 1,
		Rules:       []jobsetv1alpha2.FailurePolicyRule{{Name: "never", Action: jobsetv1alpha2.FailJobSet}},
	}
	return rt
}

// One Event informs the owner that the runtime's own policy handles evictions, not ours.
func TestDisruptionPolicy_RuntimesOwnIsReportedOnce(t *testing.T) {
	w := newFixture(t, gang(), ownPolicy(), trainJob())
	w.settle()
	if event := w.event(); !strings.Contains(event, "DisruptionPolicy") ||
		!strings.Contains(event, "rules of the failurePolicy") {
		t.Errorf("event %q does not tell that the runtime's rules are kept", event)
	}
	w.change(suspend(true))
	w.settle()
	w.change(suspend(false))
	w.settle()
	if event := w.event(); event != "" {
		t.Errorf("event %q: it was told before", event)
	}
}

// Kueue changes the job while its JobSet is created: the status is not written in that pass, and the Event arrives all
// the same.
func TestDisruptionPolicy_IsReportedDespiteAConflict(t *testing.T) {
	waits := metav1.Condition{
		Type:   trainerv1alpha1.TrainJobSuspended,
		Status: metav1.ConditionTrue,
		Reason: "Suspended",
	}
	w := newFixture(t, gang(), ownPolicy(), trainJob(func(job *trainerv1alpha1.TrainJob) {
		job.Status.Conditions = append(job.Status.Conditions, waits)
	}))
	inner, ok := w.Client.(client.WithWatch)
	if !ok {
		t.Fatalf("the fake is a %T", w.Client)
	}
	conflicts := 1
	w.Client = interceptor.NewClient(inner, interceptor.Funcs{
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			if conflicts--; conflicts >= 0 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "trainjobs"}, o.GetName(), nil)
			}
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	})
	w.settle()
	if event := w.event(); !strings.Contains(event, "DisruptionPolicy") || conflicts > 0 {
		t.Errorf("event %q after a conflict", event)
	}
}
