package trainjob_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// finish lets the job's JobSet complete at an instant, at which the job is reconciled.
func (w *fixture) finish(at time.Time) {
	w.t.Helper()
	w.clock.SetTime(at)
	w.complete(at)
	w.settle()
}

// complete lets the job's JobSet complete at an instant.
func (w *fixture) complete(at time.Time) {
	w.t.Helper()
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.TerminalState = string(jobsetv1alpha2.JobSetCompleted)
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: "Completed", Status: "True", Reason: "AllJobsCompleted", LastTransitionTime: metav1.NewTime(at),
		})
	})
}

// left are the ConfigMaps, Secrets and Services that are there.
func (w *fixture) left() []string {
	w.t.Helper()
	var names []string
	for kind, list := range map[string]client.ObjectList{
		"ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{}, "Service": &corev1.ServiceList{},
	} {
		if err := w.Client.List(w.t.Context(), list); err != nil {
			w.t.Fatal(err)
		}
		switch list := list.(type) {
		case *corev1.ConfigMapList:
			for _, item := range list.Items {
				names = append(names, kind+" "+item.Name)
			}
		case *corev1.SecretList:
			for _, item := range list.Items {
				names = append(names, kind+" "+item.Name)
			}
		case *corev1.ServiceList:
			for _, item := range list.Items {
				names = append(names, kind+" "+item.Name)
			}
		}
	}
	return names
}

func TestCleanup_FinishedJobLeavesNothing(t *testing.T) {
	for name, runtime := range map[string]*trainerv1alpha1.ClusterTrainingRuntime{"mpi": mpi(), "flux": flux()} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, gang(), runtime, trainJob())
			w.settle()
			jobSet := w.jobSet()
			jobSet.UID = "jobset-uid"
			if err := w.Client.Update(t.Context(), jobSet); err != nil {
				t.Fatal(err)
			}
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "train", OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(jobSet, jobsetv1alpha2.GroupVersion.WithKind("JobSet")),
				},
			}}
			foreign := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-mpi-hostfiles"},
			}
			for _, object := range []client.Object{service, foreign} {
				if err := w.Client.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			before := len(w.left())
			w.finish(created().Add(time.Hour))
			if got := len(w.left()); got != before || before < 4 {
				t.Errorf("%d objects right after the end, %d before", got, before)
			}
			w.clock.SetTime(created().Add(time.Hour + 45*time.Second))
			w.settle()
			if diff := cmp.Diff([]string{"ConfigMap train-mpi-hostfiles"}, w.left()); diff != "" {
				t.Errorf("left 45 s after the end (-want +got):\n%s", diff)
			}
			if w.settle(); len(w.writes) > 0 {
				t.Errorf("writes %v when all was gone", w.writes)
			}
		})
	}
}

// A foreign object with the name of the job's stays.
func TestCleanup_ForeignFilesStay(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-mpi-ssh-auth"},
	})
	w.settle()
	w.finish(created().Add(time.Hour))
	w.clock.SetTime(created().Add(2 * time.Hour))
	w.settle()
	if diff := cmp.Diff([]string{"Secret train-mpi-ssh-auth"}, w.left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// A Secret that a user has put in place of the job's stays, because the API server refuses its deletion, and the rest
// of the job is deleted all the same.
func TestCleanup_ForgedSecretStays(t *testing.T) {
	w := newFixture(t, gang(), mpi(), trainJob())
	w.settle()
	name := w.forge()
	w.finish(created().Add(time.Hour))
	w.clock.SetTime(created().Add(2 * time.Hour))
	w.settle()
	if diff := cmp.Diff([]string{"Secret " + name}, w.left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if w.settle(); len(w.writes) > 0 {
		t.Errorf("writes %v when only the Secret was left", w.writes)
	}
}

func TestCleanup_SuspendedJobRetainsFiles(t *testing.T) {
	w := newFixture(t, plan.Options{Gang: true}, mpi(), trainJob())
	w.settle()
	before := len(w.left())
	w.change(suspend(true))
	w.settle()
	w.clock.SetTime(created().Add(2 * time.Hour))
	w.settle()
	if got := len(w.left()); got != before {
		t.Errorf("%d of %d files and keys are left of a suspended job", got, before)
	}
}
