package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// TestStatusServer_RenderedJobSetStaysTheSame renders a job again after the administrator changed everything about the
// status server: the JobSet must be the same, or the API server would refuse it and the job could not be resumed.
func TestStatusServer_RenderedJobSetStaysTheSame(t *testing.T) {
	reported := 0
	for _, c := range loadCases(t).All() {
		if !strings.Contains(c.Name, "-status") && c.Name != "torch-defaults" {
			continue
		}
		job, rt, options := inputs(t, c)
		if options.StatusServer != nil {
			reported++
		}
		first, err := plan.New(job, rt, options)
		if err != nil {
			t.Fatal(err)
		}
		again, err := plan.New(job, rt, plan.Options{}.Under(plan.DecisionsOf(first.JobSet)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.JobSet, again.JobSet); diff != "" {
			t.Errorf("%s: under the decisions of its JobSet (-first +again):\n%s", c.Name, diff)
		}
	}
	if reported == 0 {
		t.Error("no case has a status server")
	}
}

// TestStatusServer_UserAddressDoesNotHideOurs is about a job with another address in its only container.
func TestStatusServer_UserAddressDoesNotHideOurs(t *testing.T) {
	job, rt, options := readCase(t, "jax-status")
	job.Spec.Trainer.Env[0].Name, job.Spec.Trainer.Env[0].Value = plan.EnvStatusURL, "https://mine"
	first, err := plan.New(job, rt, options)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.New(job, rt, plan.Options{}.Under(plan.DecisionsOf(first.JobSet)))
	if diff := cmp.Diff(first.JobSet, again.JobSet); diff != "" || err != nil {
		t.Errorf("(-first +again):\n%s%v", diff, err)
	}
}
