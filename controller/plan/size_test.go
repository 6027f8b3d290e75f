package plan_test

import (
	"math"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// Three jobs of 2^31-1 times 2^31-1 pods are less than nothing in 64 bits. The hostfile of such a job took all memory
// of the webhook, before anything was refused.
func TestNew_SizesThatWrapAreRefused(t *testing.T) {
	job, runtime, options := readCase(t, "torch-gang")
	jobs := &runtime.Spec.Template.Spec.ReplicatedJobs
	for _, name := range []string{"a", "b", "c"} {
		more := (*jobs)[0].DeepCopy()
		more.Name, more.Replicas, more.Template.Labels = name, math.MaxInt32, nil
		more.Template.Spec.Parallelism = new(int32(math.MaxInt32))
		more.Template.Spec.Completions = more.Template.Spec.Parallelism
		*jobs = append(*jobs, *more)
	}
	if _, err := plan.New(job, runtime, options); err == nil || !strings.Contains(err.Error(), "there may be 100000") {
		t.Errorf("error %.200v, want one about the number of pods", err)
	}
}
