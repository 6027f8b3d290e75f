package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/plan/cases"
)

// seeds adds the TrainJob and the runtime of every golden case.
func seeds(f *testing.F) {
	f.Helper()
	for _, c := range loadCases(f).All() {
		var job trainerv1alpha1.TrainJob
		var rt trainerv1alpha1.ClusterTrainingRuntime
		readPart(f, c, cases.TrainJob, &job)
		readPart(f, c, cases.Runtime, &rt)
		jobText, err := json.Marshal(job)
		if err != nil {
			f.Fatal(err)
		}
		runtimeText, err := json.Marshal(rt)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(jobText), string(runtimeText))
	}
}

// decoded are a job and a runtime, valid or not; input that does not decode is skipped.
func decoded(t *testing.T, jobText, runtimeText string) (trainerv1alpha1.TrainJob, plan.Runtime) {
	t.Helper()
	var job trainerv1alpha1.TrainJob
	var rt trainerv1alpha1.ClusterTrainingRuntime
	if json.Unmarshal([]byte(jobText), &job) != nil || json.Unmarshal([]byte(runtimeText), &rt) != nil {
		t.Skip()
	}
	return job, plan.Runtime{Kind: rt.Kind, Name: rt.Name, Annotations: rt.Annotations, Spec: rt.Spec}
}

// FuzzPlan plans any input that decodes as a TrainJob and a runtime, valid or not. A plan is the same each time, leaves
// its inputs unchanged, and nothing panics; its objects can be printed.
func FuzzPlan(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, jobText, runtimeText string) {
		job, runtime := decoded(t, jobText, runtimeText)
		jobBefore, specBefore := job.DeepCopy(), runtime.Spec.DeepCopy()
		for _, options := range []plan.Options{{}, {Gang: true, KeepsConstraints: true, KeepsClaims: true}} {
			first, err := plan.New(&job, runtime, options)
			if !equality.Semantic.DeepEqual(jobBefore, &job) ||
				!equality.Semantic.DeepEqual(*specBefore, runtime.Spec) {
				t.Fatal("an input was changed")
			}
			second, again := plan.New(&job, runtime, options)
			if (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
				t.Fatalf("first %v, then %v", err, again)
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Fatalf("planned twice:\n%s", diff)
			}
			if err != nil {
				continue
			}
			if _, err = plan.Applicable(first.JobSet); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzPatches merges any input that decodes as patches. Merging a manager's patch twice is merging it once, and a
// refusal names no patch of a job that has none.
func FuzzPatches(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, jobText, runtimeText string) {
		job, runtime := decoded(t, jobText, runtimeText)
		once, err := plan.New(&job, runtime, plan.Options{})
		if err != nil {
			t.Skip()
		}
		twice := job.DeepCopy()
		twice.Spec.RuntimePatches = nil
		for _, patch := range job.Spec.RuntimePatches {
			twice.Spec.RuntimePatches = append(twice.Spec.RuntimePatches, patch, patch)
		}
		doubled, err := plan.New(twice, runtime, plan.Options{})
		if err != nil {
			t.Fatalf("a patch that is merged twice is refused: %v", err)
		}
		if diff := cmp.Diff(once.JobSet, doubled.JobSet); diff != "" {
			t.Fatalf("merged twice (-once +twice):\n%s", diff)
		}
	})
}
