package trainjob_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// immutable returns the answer of JobSet's webhook to a change of a pod template.
func immutable() error {
	return apierrors.NewInvalid(jobsetv1alpha2.GroupVersion.WithKind("JobSet").GroupKind(), "train", field.ErrorList{
		field.Invalid(field.NewPath("spec", "replicatedJobs"), "the jobs", "field is immutable"),
	})
}

// patchAccount has the pods of the job run under another account: its user patches the runtime.
func patchAccount(job *trainerv1alpha1.TrainJob) {
	pod := trainerv1alpha1.ReplicatedJobPatch{Name: "node", Template: &trainerv1alpha1.JobTemplatePatch{
		Spec: &trainerv1alpha1.JobSpecPatch{Template: &trainerv1alpha1.PodTemplatePatch{
			Spec: &trainerv1alpha1.PodSpecPatch{ServiceAccountName: new("trainer")},
		}},
	}}
	job.Spec.RuntimePatches = []trainerv1alpha1.RuntimePatch{{
		Manager: "team.example/user",
		TrainingRuntimeSpec: &trainerv1alpha1.TrainingRuntimeSpecPatch{Template: &trainerv1alpha1.JobSetTemplatePatch{
			Spec: &trainerv1alpha1.JobSetSpecPatch{ReplicatedJobs: []trainerv1alpha1.ReplicatedJobPatch{pod}},
		}},
	}}
}

// account is the account of the pods of the job's JobSet.
func (w *world) account() string {
	w.t.Helper()
	return w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.ServiceAccountName
}

// suspendedBecause returns the message of the condition Suspended, empty if it is not true.
func (w *world) suspendedBecause() string {
	w.t.Helper()
	found := meta.FindStatusCondition(w.job().Status.Conditions, trainerv1alpha1.TrainJobSuspended)
	if found == nil || found.Status != metav1.ConditionTrue {
		return ""
	}
	return found.Message
}

// A queued JobSet that does not take a patch is made anew, while the job waits and when it is resumed with it.
func TestReplace_JobSetThatDoesNotTakeAPatch(t *testing.T) {
	for name, resumes := range map[string]bool{"while it waits": false, "with its resumption": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, gang(), torch(), trainJob(suspend(true), deadline(60)))
			w.settle()
			w.refused = immutable()
			w.clock.SetTime(created().Add(time.Hour))
			w.change(patchAccount)
			if resumes {
				w.change(suspend(false))
			}
			w.settle()
			if w.jobSet() != nil {
				t.Fatal("the JobSet is kept")
			}
			if event := w.event(); !strings.Contains(event, "JobSetReplaced") {
				t.Errorf("event %q", event)
			}
			if resumes &&
				w.suspendedBecause() != "not resumed: a PodGroup, ComputeDomain or JobSet of its last start has not gone yet" {
				t.Errorf("the condition says %q", w.suspendedBecause())
			}
			w.settle()
			if w.account() != "trainer" || *w.jobSet().Spec.Suspend == resumes {
				t.Errorf("the account is %q, suspended is %v", w.account(), *w.jobSet().Spec.Suspend)
			}
			if resumes && w.suspendedBecause() != "" {
				t.Error("the job runs, and its status says that it does not")
			}
		})
	}
}

// retaining returns a policy for one volume claim. Without a retention policy, JobSet deletes the claim with the JobSet.
func retaining(retention *jobsetv1alpha2.VolumeRetentionPolicy) []jobsetv1alpha2.VolumeClaimPolicy {
	return []jobsetv1alpha2.VolumeClaimPolicy{{
		Templates:       []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "saved"}}},
		RetentionPolicy: retention,
	}}
}

// A JobSet whose volume claims are retained is replaced.
func TestReplace_RetainedVolumes(t *testing.T) {
	w := newWorld(t, plan.Options{}, torch(), trainJob(suspend(true)))
	w.settle()
	there := w.jobSet()
	there.Generation = 3
	there.Spec.VolumeClaimPolicies = retaining(
		&jobsetv1alpha2.VolumeRetentionPolicy{WhenDeleted: new(jobsetv1alpha2.RetentionPolicyRetain)},
	)
	if err := w.Client.Update(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	w.refused = immutable()
	w.change(patchAccount)
	_, _ = w.reconcile()
	if w.jobSet() != nil {
		t.Error("the JobSet stays")
	}
}

// What cannot be changed is said, and nothing is lost.
func TestReplace_JobSetStays(t *testing.T) {
	volumes := retaining(&jobsetv1alpha2.VolumeRetentionPolicy{WhenDeleted: new(jobsetv1alpha2.RetentionPolicyDelete)})
	for name, of := range map[string]struct {
		edit func(*jobsetv1alpha2.JobSet)
		job  func(*trainerv1alpha1.TrainJob)
		want string
	}{
		"its pods have not gone": {
			edit: func(s *jobsetv1alpha2.JobSet) {
				s.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "node", Active: 1}}
			},
			job: patchAccount, want: "has not gone yet",
		},
		"what its pods saved would be lost": {
			edit: func(s *jobsetv1alpha2.JobSet) { s.Spec.VolumeClaimPolicies, s.Generation = volumes, 3 },
			job:  patchAccount, want: "its volume claims would be deleted with it",
		},
		"what its pods saved would be lost by default": {
			edit: func(s *jobsetv1alpha2.JobSet) {
				s.Spec.VolumeClaimPolicies, s.Generation = retaining(nil), 3
			},
			job: patchAccount, want: "its volume claims would be deleted with it",
		},
		"what its pods saved would be lost by the default of the policy": {
			edit: func(s *jobsetv1alpha2.JobSet) {
				s.Spec.VolumeClaimPolicies, s.Generation = retaining(&jobsetv1alpha2.VolumeRetentionPolicy{}), 3
			},
			job: patchAccount, want: "its volume claims would be deleted with it",
		},
		"another one would be refused, too": {
			edit: func(*jobsetv1alpha2.JobSet) {}, job: func(*trainerv1alpha1.TrainJob) {}, want: "field is immutable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt := torch()
			rt.Spec.Template.Spec.VolumeClaimPolicies = volumes
			w := newWorld(t, plan.Options{}, rt, trainJob(suspend(true)))
			w.settle()
			there := w.jobSet()
			of.edit(there)
			status := there.Status
			if err := w.Client.Update(t.Context(), there); err != nil {
				t.Fatal(err)
			}
			w.say(func(s *jobsetv1alpha2.JobSetStatus) { *s = status })
			w.refused = immutable()
			w.change(of.job)
			w.change(suspend(false))
			_, _ = w.reconcile()
			if w.jobSet() == nil {
				t.Fatal("the JobSet is deleted")
			}
			if got := w.suspendedBecause(); !strings.HasPrefix(got, "not resumed: ") ||
				!strings.Contains(got, of.want) {
				t.Errorf("the condition says %q, want %q", got, of.want)
			}
		})
	}
}

// A JobSet that another controller or an earlier version has rendered is replaced if it refuses the planned change. Its digest was never
// recorded.
func TestReplace_JobSetOfAnotherController(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	for _, of := range []client.Object{w.state(), w.copied()} {
		if err := w.Client.Delete(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	}
	theirs := w.jobSet()
	theirs.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.ServiceAccountName = "theirs"
	if err := w.Client.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	w.refused = immutable()
	w.settle()
	w.settle()
	if got := w.account(); got != "" {
		t.Errorf("the account is %q", got)
	}
}

// A refusal that prints a whole template is cut in its middle: the field and the reason stay, and the status can be written.
func TestReplace_LongRefusalIsCut(t *testing.T) {
	w := newWorld(t, plan.Options{}, torch(), trainJob(suspend(true)))
	w.settle()
	w.refused = apierrors.NewInvalid(
		jobsetv1alpha2.GroupVersion.WithKind("JobSet").GroupKind(),
		"train",
		field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicatedJobs"), strings.Repeat("x", 1<<16), "field is immutable"),
		},
	)
	w.change(suspend(false))
	if _, err := w.reconcile(); err == nil {
		t.Error("no error")
	}
	got := w.suspendedBecause()
	if len(got) > 1000 || !strings.Contains(got, "spec.replicatedJobs") ||
		!strings.HasSuffix(got, "field is immutable") {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
}
