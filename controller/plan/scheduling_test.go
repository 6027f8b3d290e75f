package plan_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// A Job's own scheduling beside the runtime's would put its pods into two groups. There is no golden case of it because
// upstream's Kubernetes does not know the field.
func TestScheduling_JobBesideRuntimeIsRefused(t *testing.T) {
	job, rt, options := readCase(t, "torch-scheduling-whole")
	rt.Spec.Template.Spec.ReplicatedJobs[0].Template.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{}
	_, err := plan.New(job, rt, options)
	if err == nil || !strings.Contains(err.Error(), "replicated job node has scheduling of its own") {
		t.Errorf("error %v, want one that names the replicated job", err)
	}
}
