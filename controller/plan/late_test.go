package plan_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// Few late members can be too much for an annotation too, when each has long placement rules.
func TestLateMembers_OversizedAnnotationIsRefused(t *testing.T) {
	job, runtime, options := readCase(t, "plain-gang-late-launcher")
	for i := range runtime.Spec.Template.Spec.ReplicatedJobs {
		pod := &runtime.Spec.Template.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		pod.Tolerations = []corev1.Toleration{{Key: "example.com/" + strings.Repeat("x", 250<<10)}}
	}
	if _, err := plan.New(job, runtime, options); err == nil || !strings.Contains(err.Error(), "there may be 245760") {
		t.Errorf("error %.200v, want one about the announcement", err)
	}
}
