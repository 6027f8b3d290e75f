package trainjob_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/controller/trainjob"
)

// preview runs one of the previews with a dry-run client, and fails the test if anything is written by it.
func (w *fixture) preview(
	look func(*trainjob.Reconciler, context.Context, *trainerv1alpha1.TrainJob) (trainjob.Adoption, error),
) trainjob.Adoption {
	w.t.Helper()
	trying := client.NewDryRunClient(w.Client)
	reconciler := &trainjob.Reconciler{
		Client:   trying,
		Live:     trying,
		Resolver: resolve.New(trying, trying, system),
		Options:  w.Options,
		Class:    w.Class,
		Clock:    w.clock,
	}
	w.writes = nil
	found, err := look(reconciler, w.t.Context(), w.job())
	if err != nil {
		w.t.Fatal(err)
	}
	if slices.ContainsFunc(w.writes, func(write string) bool { return write != "try JobSet" }) {
		w.t.Errorf("the preview has written: %v", w.writes)
	}
	return found
}

const groupField = "spec.replicatedJobs[node].template.spec.template.spec.schedulingGroup"

func TestPreviewAdoption(t *testing.T) {
	managed := func(by string) func(*trainerv1alpha1.TrainJob) {
		return func(job *trainerv1alpha1.TrainJob) { job.Spec.ManagedBy = new(by) }
	}
	strangers := func(jobSet *jobsetv1alpha2.JobSet) { jobSet.OwnerReferences = nil }
	keepsData := func(jobSet *jobsetv1alpha2.JobSet) {
		waits(jobSet)
		jobSet.Generation = 2
		jobSet.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{
			{
				RetentionPolicy: &jobsetv1alpha2.VolumeRetentionPolicy{
					WhenDeleted: new(jobsetv1alpha2.RetentionPolicyDelete),
				},
			},
		}
	}
	for name, c := range map[string]struct {
		options plan.Options
		objects []client.Object
		refused error
		want    trainjob.Action
		field   string // that is listed; empty if none may be
		reason  string
	}{
		"a running job keeps its JobSet": {
			options: gang(), objects: []client.Object{torch(), trainJob(), upstreams(t)}, want: trainjob.ActionKeep,
		},
		"a running job that says something else by now keeps it, too": {
			objects: []client.Object{torch(), trainJob(), upstreams(t, func(jobSet *jobsetv1alpha2.JobSet) {
				jobSet.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Image = "example.com/torch:0"
			})},
			want: trainjob.ActionKeep, field: "spec.replicatedJobs[node].template.spec.template.spec.containers[node].image",
		},
		"a running job without its runtime": {
			objects: []client.Object{trainJob(), upstreams(t)}, want: trainjob.ActionKeep, reason: "after a suspension",
		},
		"a queued job becomes a gang": {
			options: gang(), objects: []client.Object{torch(), trainJob(suspend(true)), upstreams(t, waits)}, refused: immutable(),
			want: trainjob.ActionReplace, field: groupField,
		},
		"a queued job whose JobSet takes the change": {
			objects: []client.Object{torch(), trainJob(suspend(true)), upstreams(t, waits, func(jobSet *jobsetv1alpha2.JobSet) {
				jobSet.Spec.ReplicatedJobs[0].Replicas = 3
			})},
			want: trainjob.ActionPatch, field: "spec.replicatedJobs[node].replicas",
		},
		"a job without a JobSet": {
			objects: []client.Object{torch(), trainJob()}, want: trainjob.ActionCreate,
		},
		"a job without a runtime": {
			objects: []client.Object{trainJob()}, want: trainjob.ActionBlocked, reason: "torch",
		},
		"a JobSet of somebody else's": {
			objects: []client.Object{torch(), trainJob(), upstreams(t, strangers)}, want: trainjob.ActionBlocked, reason: "JobSet",
		},
		"volumes that would be deleted": {
			options: gang(), objects: []client.Object{torch(), trainJob(suspend(true)), upstreams(t, keepsData)}, refused: immutable(),
			want: trainjob.ActionKeep, reason: "volume claims", field: groupField,
		},
		"volumes that would be deleted, and another size": {
			options: gang(), objects: []client.Object{torch(), trainJob(suspend(true), resize), upstreams(t, keepsData)}, refused: immutable(),
			want: trainjob.ActionBlocked, reason: "volume claims",
		},
		"a policy that refuses the JobSet": {
			options: gang(), objects: []client.Object{torch(), trainJob(suspend(true)), upstreams(t, waits)},
			refused: apierrors.NewForbidden(schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}, "train", errors.New("no latest images")),
			want:    trainjob.ActionBlocked, reason: "no latest images",
		},
		"a webhook without dry runs": {
			objects: []client.Object{torch(), trainJob(suspend(true)), upstreams(t, waits)}, refused: apierrors.NewBadRequest("webhook a does not support dry run"),
			want: trainjob.ActionBlocked, reason: "does not support dry run",
		},
		"a job of Kueue's other cluster": {
			objects: []client.Object{torch(), trainJob(managed("kueue.x-k8s.io/multikueue"))}, want: trainjob.ActionSkip,
			reason: "kueue.x-k8s.io/multikueue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.options, c.objects...)
			w.refused = c.refused
			got := w.preview((*trainjob.Reconciler).PreviewAdoption)
			if got.Action != c.want {
				t.Fatalf("%+v, want %s", got, c.want)
			}
			if c.field == "" && len(got.Fields) > 0 || c.field != "" && !slices.Contains(got.Fields, c.field) {
				t.Errorf("fields %v, want %q", got.Fields, c.field)
			}
			if !strings.Contains(got.Reason, c.reason) || (got.Reason == "") != (c.reason == "") {
				t.Errorf("reason %q, want %q", got.Reason, c.reason)
			}
		})
	}
}

// dropGroups takes the groups of pods out of a JobSet.
func dropGroups(jobSet map[string]any) {
	replicated, _, _ := unstructured.NestedSlice(jobSet, "spec", "replicatedJobs")
	for _, entry := range replicated {
		unstructured.RemoveNestedField(
			entry.(map[string]any),
			"template",
			"spec",
			"template",
			"spec",
			"schedulingGroup",
		)
	}
	if len(replicated) > 0 {
		_ = unstructured.SetNestedSlice(jobSet, replicated, "spec", "replicatedJobs")
	}
}

// JobSet 0.11, which Kubeflow Trainer 2.2 installs, does not know the field that names the group of a gang's pods.
func TestPreviewAdoption_JobSetsThatDropGroups(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.dropsGroups = true
	if got := w.preview(
		(*trainjob.Reconciler).PreviewAdoption,
	); got.Action != trainjob.ActionBlocked || !strings.Contains(got.Reason, "JobSet 0.12") {
		t.Errorf("%+v, want blocked by an old JobSet", got)
	}
}

// The dry run reports the controller's later action.
func TestPreviewAdoption_UnchangedAfterAdoption(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	if got := w.preview(
		(*trainjob.Reconciler).PreviewAdoption,
	); got.Action != trainjob.ActionUnchanged ||
		len(got.Fields) > 0 {
		t.Errorf("%+v, want unchanged", got)
	}
}

func TestPreviewReturn(t *testing.T) {
	chosen := func(job *trainerv1alpha1.TrainJob) { job.Spec.ManagedBy = new(trainerv1alpha1.LockstepManagedBy) }
	t.Run("a queued job of Lockstep's", func(t *testing.T) {
		w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
		w.settle()
		got := w.preview((*trainjob.Reconciler).PreviewReturn)
		if want := "kubectl delete jobset -n team-a train"; got.Action != trainjob.ActionReplace ||
			!strings.Contains(got.Reason, want) {
			t.Errorf("%+v, want replace by %s", got, want)
		}
	})
	t.Run("a running gang", func(t *testing.T) {
		w := newFixture(t, gang(), torch(), trainJob())
		w.settle()
		if got := w.preview((*trainjob.Reconciler).PreviewReturn); got.Action != trainjob.ActionKeep ||
			!strings.Contains(got.Reason, "PodGroup train") {
			t.Errorf("%+v, want keep with PodGroup train", got)
		}
	})
	t.Run("a queued job that was never Lockstep's", func(t *testing.T) {
		w := newFixture(t, gang(), torch(), trainJob(suspend(true)), upstreams(t, waits))
		if got := w.preview((*trainjob.Reconciler).PreviewReturn); got.Action != trainjob.ActionUnchanged {
			t.Errorf("%+v, want unchanged", got)
		}
	})
	t.Run("a job that was chosen", func(t *testing.T) {
		w := newFixture(t, gang(), torch(), trainJob(chosen))
		w.settle()
		if got := w.preview((*trainjob.Reconciler).PreviewReturn); got.Action != trainjob.ActionBlocked ||
			!strings.Contains(got.Reason, "create it again") {
			t.Errorf("%+v, want blocked", got)
		}
	})
}
