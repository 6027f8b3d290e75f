package trainjob_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
func (w *fixture) account() string {
	w.t.Helper()
	return w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.ServiceAccountName
}

// suspendedBecause returns the message of the condition Suspended, empty if it is not true.
func (w *fixture) suspendedBecause() string {
	w.t.Helper()
	found := meta.FindStatusCondition(w.job().Status.Conditions, trainerv1alpha1.TrainJobSuspended)
	if found == nil || found.Status != metav1.ConditionTrue {
		return ""
	}
	return found.Message
}

// A queued JobSet that does not permit a patch is created anew, while the job waits and when it is resumed with it.
func TestReplace_JobSetThatDoesNotTakeAPatch(t *testing.T) {
	for name, resumes := range map[string]bool{"while it waits": false, "with its resumption": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, gang(), torch(), trainJob(suspend(true), deadline(60)))
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
				w.suspendedBecause() != "not resumed: a PodGroup, claim, ComputeDomain or JobSet of its last start has not gone yet" {
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

// A JobSet with pods that lose a label is created anew, because JobSet merges labels into the Jobs that it resumes. A
// JobSet to which a webhook adds a label each time is created anew once for each rendering.
func TestReplace_JobsWouldKeepWhatIsDropped(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob(suspend(true)))
	w.change(label("team", "a"))
	w.settle()
	w.say(func(s *jobsetv1alpha2.JobSetStatus) {
		s.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "node", Active: 1}}
	})
	w.change(func(job *trainerv1alpha1.TrainJob) { job.Spec.RuntimePatches = nil })
	_, _ = w.reconcile()
	if w.jobSet() == nil {
		t.Fatal("the JobSet is deleted while it has pods")
	}
	w.say(func(s *jobsetv1alpha2.JobSetStatus) { s.ReplicatedJobsStatus = nil })
	w.settle()
	if w.jobSet() != nil {
		t.Fatal("the JobSet stays, with Jobs that have the label")
	}
	w.settle()
	w.update(func(pod *corev1.PodTemplateSpec, jobSet *jobsetv1alpha2.JobSet) {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "webhook", "added")
		jobSet.UID = "second"
	})
	w.settle()
	if found := w.jobSet(); found == nil || found.UID != "second" {
		t.Error("the JobSet is made anew for a label that is not the plan's")
	}
}

// A job loses a patch in the update that suspends it, as when Kueue evicts it and takes back a flavor's node selector.
// Its JobSet is made anew all the same, once its pods are gone.
func TestReplace_SuspensionDropsAPatch(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob())
	w.change(label("team", "a"))
	w.start()
	w.say(func(s *jobsetv1alpha2.JobSetStatus) {
		s.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "node", Active: 1}}
	})
	w.change(func(job *trainerv1alpha1.TrainJob) { job.Spec.Suspend, job.Spec.RuntimePatches = new(true), nil })
	_, _ = w.reconcile()
	if found := w.jobSet(); found == nil || !*found.Spec.Suspend {
		t.Fatal("the JobSet is not suspended")
	}
	w.say(func(s *jobsetv1alpha2.JobSetStatus) { s.ReplicatedJobsStatus = nil })
	w.settle()
	if w.jobSet() != nil {
		t.Error("the JobSet stays, with Jobs that have the label")
	}
}

// retaining returns a policy for one volume claim. Without a retention policy, JobSet deletes the claim with the
// JobSet.
func retaining(retention *jobsetv1alpha2.VolumeRetentionPolicy) []jobsetv1alpha2.VolumeClaimPolicy {
	return []jobsetv1alpha2.VolumeClaimPolicy{{
		Templates:       []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "saved"}}},
		RetentionPolicy: retention,
	}}
}

// A JobSet with a policy that retains its volume claims is replaced.
func TestReplace_RetainedVolumes(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob(suspend(true)))
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

// An Event names the immutable fields, and nothing is lost.
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
		"its claims would be deleted, and its size is another": {
			edit: func(s *jobsetv1alpha2.JobSet) { s.Spec.VolumeClaimPolicies, s.Generation = volumes, 3 },
			job:  resize, want: "the job has another size than its JobSet",
		},
		"another one would be refused, too": {
			edit: func(*jobsetv1alpha2.JobSet) {}, job: func(*trainerv1alpha1.TrainJob) {}, want: "field is immutable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt := torch()
			rt.Spec.Template.Spec.VolumeClaimPolicies = volumes
			w := newFixture(t, plan.Options{}, rt, trainJob(suspend(true)))
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

// resize gives the job more nodes than its runtime has.
func resize(job *trainerv1alpha1.TrainJob) {
	job.Spec.Trainer = &trainerv1alpha1.Trainer{NumNodes: new(int32(3))}
}

// changesAccount reports whether a JobSet that is applied names another account than the empty one of the fixture.
func changesAccount(content map[string]any) bool {
	jobs, _, _ := unstructured.NestedSlice(content, "spec", "replicatedJobs")
	account, _, _ := unstructured.NestedString(
		jobs[0].(map[string]any),
		"template",
		"spec",
		"template",
		"spec",
		"serviceAccountName",
	)
	return account != ""
}

// A JobSet with claims that would be deleted with it is not replaced: only its mutable fields are patched, and one
// Event reports that.
func TestReplace_VolumesKeepTheJobSet(t *testing.T) {
	for name, policy := range map[string]*jobsetv1alpha2.VolumeRetentionPolicy{
		"explicitly": {WhenDeleted: new(jobsetv1alpha2.RetentionPolicyDelete)}, "by default": nil, "by the default of the policy": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
			w.settle()
			there := w.jobSet()
			there.UID, there.Generation, there.Spec.VolumeClaimPolicies = "jobset-uid", 3, retaining(policy)
			if err := w.Client.Update(t.Context(), there); err != nil {
				t.Fatal(err)
			}
			w.refused, w.refuses = immutable(), changesAccount
			w.change(patchAccount)
			w.change(func(job *trainerv1alpha1.TrainJob) {
				pods := job.Spec.RuntimePatches[0].TrainingRuntimeSpec.Template.Spec.ReplicatedJobs[0].Template.Spec.Template
				pods.Spec.NodeSelector = map[string]string{"pool": "a"}
			})
			w.settle()
			if event := w.event(); !strings.Contains(event, "JobSetKept") ||
				!strings.Contains(event, "serviceAccountName") {
				t.Errorf("event %q", event)
			}
			if n := w.applies("JobSet"); n > 0 {
				t.Errorf("the JobSet is applied %d times more", n)
			}
			w.change(suspend(false))
			w.settle()
			pods := w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
			if *w.jobSet().Spec.Suspend || pods.ServiceAccountName != "" || pods.NodeSelector["pool"] != "a" {
				t.Errorf("suspended %v, pods %+v", *w.jobSet().Spec.Suspend, pods)
			}
			if w.podGroup() == nil || w.jobSet().UID != there.UID {
				t.Error("the job runs without its group, or with another JobSet")
			}
			for event := w.event(); event != ""; event = w.event() {
				if strings.Contains(event, "JobSetKept") {
					t.Errorf("again: %s", event)
				}
			}
		})
	}
}

// A JobSet that is not replaced, with pods that are in no group, gets none: a gang without pods would wait for ever.
func TestReplace_KeptJobSetGetsNoPhantomGroup(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob(suspend(true)))
	w.settle()
	there := w.jobSet()
	there.Generation, there.Spec.VolumeClaimPolicies = 3, retaining(nil)
	if err := w.Client.Update(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	w.refused, w.refuses = immutable(), changesAccount
	w.change(patchAccount)
	w.change(func(job *trainerv1alpha1.TrainJob) { job.Annotations = map[string]string{"lockstep.dev/gang": "on"} })
	w.change(suspend(false))
	w.settle()
	if w.podGroup() != nil {
		t.Error("there is a group of which no pod is")
	}
}

// A queued JobSet with claims that was patched and never ran is replaced: there is nothing to lose.
func TestReplace_VolumesOfAJobSetThatNeverRan(t *testing.T) {
	for name, c := range map[string]struct {
		suspended time.Duration
		restarts  int32
		replaced  bool
	}{
		"suspended since its creation": {suspended: time.Second, replaced: true},
		"suspended after a run":        {suspended: time.Minute},
		"suspended after a restart":    {suspended: time.Second, restarts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, plan.Options{}, torch(), trainJob(suspend(true)))
			w.settle()
			there := w.jobSet()
			there.Generation, there.Spec.VolumeClaimPolicies = 2, retaining(nil)
			there.CreationTimestamp = metav1.NewTime(created())
			if err := w.Client.Update(t.Context(), there); err != nil {
				t.Fatal(err)
			}
			w.say(func(s *jobsetv1alpha2.JobSetStatus) {
				s.Restarts = c.restarts
				s.Conditions = []metav1.Condition{{
					Type: string(jobsetv1alpha2.JobSetSuspended), Status: metav1.ConditionTrue, Reason: "SuspendedJobs",
					LastTransitionTime: metav1.NewTime(created().Add(c.suspended)),
				}}
			})
			w.refused, w.refuses = immutable(), changesAccount
			w.change(patchAccount)
			_, _ = w.reconcile()
			if replaced := w.jobSet() == nil; replaced != c.replaced {
				t.Errorf("replaced is %v, want %v", replaced, c.replaced)
			}
		})
	}
}

// A JobSet that another controller or an earlier version has rendered is replaced if it refuses the planned change. Its
// digest was never recorded.
func TestReplace_JobSetOfAnotherController(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
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

// A refusal that prints a whole template is cut in its middle: the field and the reason stay, and the status can be
// written.
func TestReplace_LongRefusalIsCut(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob(suspend(true)))
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
