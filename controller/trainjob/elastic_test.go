package trainjob_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

// A JobSet reports a Job ready when all its pods are, which an elastic one need not have: its Job is read.
func TestElastic_ReadyRanksAreCounted(t *testing.T) {
	job := trainJob()
	job.Annotations = map[string]string{topology.AnnotationMinNodes: "1", topology.AnnotationMaxNodes: "4"}
	w := newFixture(t, gang(), torch(), job)
	w.settle()
	work := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-node-0"}}
	if err := w.Client.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "node", Active: 1}}
	})
	for _, step := range []struct {
		ready int32
		phase trainerv1alpha1.TrainJobPhase
		again time.Duration
	}{
		{0, trainerv1alpha1.PhaseWaiting, 30 * time.Second},
		{1, trainerv1alpha1.PhaseRunning, 30 * time.Second},
		{4, trainerv1alpha1.PhaseRunning, 30 * time.Second},
		{3, trainerv1alpha1.PhaseRunning, 30 * time.Second},
	} {
		work.Status.Ready = new(step.ready)
		if err := w.Client.Status().Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		result := w.settle()
		status := w.job().Status.Scheduling
		if status == nil || status.Elastic == nil {
			t.Fatalf("with %d ready ranks status.scheduling says nothing of them: %+v", step.ready, status)
		}
		want := trainerv1alpha1.ElasticStatus{MinNodes: 1, MaxNodes: 4, ReadyNodes: step.ready}
		if *status.Elastic != want || status.Phase != step.phase {
			t.Errorf("with %d ready ranks: %s, %+v", step.ready, status.Phase, *status.Elastic)
		}
		if result.RequeueAfter != step.again {
			t.Errorf(
				"with %d ready ranks it is looked at again after %s, want %s",
				step.ready,
				result.RequeueAfter,
				step.again,
			)
		}
	}
}
