package trainjob_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/metrics"
)

func TestRuntimeRef_MissingRuntime(t *testing.T) {
	for _, rt := range []client.Object{
		torch(),
		&trainerv1alpha1.TrainingRuntime{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "torch"}, Spec: torchSpec(),
		},
	} {
		kind := trainerv1alpha1.ClusterTrainingRuntimeKind
		if rt.GetNamespace() != "" {
			kind = trainerv1alpha1.TrainingRuntimeKind
		}
		t.Run(kind, func(t *testing.T) {
			w := newFixture(
				t,
				gang(),
				trainJob(func(job *trainerv1alpha1.TrainJob) { job.Spec.RuntimeRef.Kind = &kind }),
			)
			if result := w.settle(); result.RequeueAfter == 0 {
				t.Error("it does not come back")
			}
			if event := w.event(); !strings.Contains(event, "TrainJobResourcesCreationFailed") ||
				!strings.Contains(event, "torch") {
				t.Errorf("event %q, want one that names the runtime", event)
			}
			if got := w.count("unknown", metrics.ResultMissingRuntime); got != 1 {
				t.Errorf("counted %v times, want once", got)
			}
			if err := w.Client.Create(t.Context(), rt); err != nil {
				t.Fatal(err)
			}
			requests := w.JobsOf(kind)(t.Context(), rt)
			if len(requests) != 1 || requests[0].Name != "train" {
				t.Fatalf("the runtime's appearance wakes %v, want train", requests)
			}
			w.settle()
			if w.jobSet() == nil {
				t.Error("no JobSet after the runtime appeared")
			}
		})
	}
}

func TestRuntimeRef_UnknownKindIsRefused(t *testing.T) {
	w := newFixture(
		t,
		gang(),
		trainJob(func(job *trainerv1alpha1.TrainJob) { job.Spec.RuntimeRef.Kind = new("Recipe") }),
	)
	_, err := w.reconcile()
	if !errors.Is(err, reconcile.TerminalError(nil)) || !strings.Contains(err.Error(), "Recipe.trainer.kubeflow.org") {
		t.Fatalf("error %v, want a terminal one that names the kind", err)
	}
}
