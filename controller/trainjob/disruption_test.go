package trainjob_test

import (
	"strings"
	"testing"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// One Event informs the owner that the runtime's own policy handles evictions, not ours.
func TestDisruptionPolicy_RuntimesOwnIsReportedOnce(t *testing.T) {
	rt := torch()
	rt.Spec.Template.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{
		MaxRestarts: 1,
		Rules:       []jobsetv1alpha2.FailurePolicyRule{{Name: "never", Action: jobsetv1alpha2.FailJobSet}},
	}
	w := newWorld(t, gang(), rt, trainJob())
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
