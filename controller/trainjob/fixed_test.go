package trainjob_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// JobSet's webhook completes volume claims when a JobSet is created and lets nobody change them: a job that was created
// suspended must go on with those that are there.
func TestVolumeClaimsOfAJobSetStayAsTheyAre(t *testing.T) {
	rt := torch()
	rt.Spec.Template.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{
		Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "initializer"}}},
	}}
	w := newWorld(t, plan.Options{}, rt, trainJob(suspend(true)))
	w.settle()
	completed := w.jobSet()
	completed.Spec.VolumeClaimPolicies[0].RetentionPolicy = &jobsetv1alpha2.VolumeRetentionPolicy{
		WhenDeleted: new(jobsetv1alpha2.RetentionPolicyDelete),
	}
	if err := w.Client.Update(t.Context(), completed); err != nil {
		t.Fatal(err)
	}
	w.change(suspend(false))
	w.settle()
	if kept := w.jobSet().Spec.VolumeClaimPolicies[0].RetentionPolicy; kept == nil || kept.WhenDeleted == nil {
		t.Errorf("the retention policy is %v now: the API server would refuse that", kept)
	}
}

// To apply an empty metadata where Kueue's labels were would make null of it, which is refused.
func TestLabelsThatAPatchTookBackAreGone(t *testing.T) {
	labeled := func(job *trainerv1alpha1.TrainJob) {
		job.Spec.RuntimePatches = []trainerv1alpha1.RuntimePatch{
			{
				Manager: plan.KueueManager,
				TrainingRuntimeSpec: &trainerv1alpha1.TrainingRuntimeSpecPatch{
					Template: &trainerv1alpha1.JobSetTemplatePatch{
						Spec: &trainerv1alpha1.JobSetSpecPatch{ReplicatedJobs: []trainerv1alpha1.ReplicatedJobPatch{
							{
								Name: "node",
								Template: &trainerv1alpha1.JobTemplatePatch{Spec: &trainerv1alpha1.JobSpecPatch{
									Template: &trainerv1alpha1.PodTemplatePatch{
										Metadata: &metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
									},
								}},
							},
						}},
					},
				},
			},
		}
	}
	w := newWorld(t, plan.Options{}, torch(), trainJob(suspend(true), labeled))
	w.settle()
	pod := func() map[string]string { return w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Labels }
	if pod()["a"] != "b" {
		t.Fatalf("labels %v, want the patch's", pod())
	}
	w.change(func(job *trainerv1alpha1.TrainJob) { job.Spec.RuntimePatches = nil })
	w.settle()
	if len(pod()) > 0 {
		t.Errorf("labels %v after the patch was taken back", pod())
	}
}
