package trainjob_test

import (
	"maps"
	"strings"
	"testing"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// A job may name a class for its pods beside Kueue's class for its turn in the queue. Kueue's label stays as its owner
// wrote it, and none of the job's objects has it: Kueue would queue them, too.
func TestReconcile_LeavesKueuesPriorityClassAlone(t *testing.T) {
	const kueues = "kueue.x-k8s.io/priority-class"
	w := newFixture(t, gang(), torch(), trainJob(suspend(true), func(job *trainerv1alpha1.TrainJob) {
		job.Labels = map[string]string{kueues: "not-so-urgent", "kueue.x-k8s.io/queue-name": "research"}
		job.Annotations = map[string]string{"lockstep.dev/priority-class": "urgent"}
	}))
	labels := maps.Clone(w.job().Labels)
	w.settle()
	w.change(func(job *trainerv1alpha1.TrainJob) { job.Spec.Suspend = new(false) })
	w.settle()
	if got := w.job().Labels; !maps.Equal(got, labels) {
		t.Errorf("the job's labels are %v, want %v", got, labels)
	}
	pods := w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template
	if pods.Spec.PriorityClassName != "urgent" {
		t.Errorf("pods have class %q, want the one that the job names", pods.Spec.PriorityClassName)
	}
	for what, has := range map[string]map[string]string{
		"JobSet": w.jobSet().Labels, "pod template": pods.Labels, "PodGroup": w.podGroup().Labels,
	} {
		for key := range has {
			if strings.HasPrefix(key, "kueue.x-k8s.io/") {
				t.Errorf("the %s has label %s", what, key)
			}
		}
	}
}
