package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

func TestTrainJob_Ending(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"a job that runs":        {nil, ""},
		"one that was suspended": {[]metav1.Condition{{Type: v1alpha1.TrainJobSuspended, Status: metav1.ConditionTrue}}, ""},
		"one that is complete": {
			[]metav1.Condition{
				{Type: v1alpha1.TrainJobFailed, Status: metav1.ConditionFalse},
				{Type: v1alpha1.TrainJobComplete, Status: metav1.ConditionTrue},
			},
			v1alpha1.TrainJobComplete,
		},
		"one that failed": {
			[]metav1.Condition{{Type: v1alpha1.TrainJobFailed, Status: metav1.ConditionTrue}}, v1alpha1.TrainJobFailed,
		},
		"one that may have": {[]metav1.Condition{{Type: v1alpha1.TrainJobFailed, Status: metav1.ConditionUnknown}}, ""},
	} {
		job := &v1alpha1.TrainJob{Status: v1alpha1.TrainJobStatus{Conditions: c.conditions}}
		got := ""
		if end := job.Ending(); end != nil {
			got = end.Type
		}
		if got != c.want {
			t.Errorf("%s: ended by %q, want %q", name, got, c.want)
		}
	}
}
