package plan_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// TestAJobSetKeepsItsStatusServer renders a job again after the administrator changed everything about the status server:
// the JobSet must come out the same, or the API server would refuse it and the job could not be resumed.
func TestAJobSetKeepsItsStatusServer(t *testing.T) {
	cases, err := filepath.Glob("testdata/*-status*")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range append(cases, "testdata/torch-defaults") {
		job, rt, options := readCase(t, dir)
		first, err := plan.New(job, rt, options)
		if err != nil {
			t.Fatal(err)
		}
		again, err := plan.New(job, rt, plan.Options{}.Under(plan.DecisionsOf(first.JobSet)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.JobSet, again.JobSet); diff != "" {
			t.Errorf("%s: under the decisions of its JobSet (-first +again):\n%s", dir, diff)
		}
	}
}

// TestAUsersAddressDoesNotHideOurs is about the job whose only container has another address.
func TestAUsersAddressDoesNotHideOurs(t *testing.T) {
	job, rt, options := readCase(t, "testdata/jax-status")
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
