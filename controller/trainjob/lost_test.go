package trainjob_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/trainjob"
)

func (w *fixture) stopped() bool {
	w.t.Helper()
	suspended := w.jobSet().Spec.Suspend
	return suspended != nil && *suspended
}

// A suspension stops the pods of a job, whatever else fails: a queue hands its quota on only then.
func TestSuspend_AlwaysStopsThePods(t *testing.T) {
	key := metav1.ObjectMeta{Namespace: namespace, Name: "train-mpi-hostfile"}
	t.Run("somebody else's ConfigMap", func(t *testing.T) {
		w := newFixture(t, plan.Options{}, mpi(), trainJob(suspend(false)))
		w.settle()
		if err := w.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: key}); err != nil {
			t.Fatal(err)
		}
		if err := w.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: key}); err != nil {
			t.Fatal(err)
		}
		w.change(suspend(true))
		if _, err := w.reconcile(); !errors.Is(err, trainjob.ErrForeign) || !w.stopped() {
			t.Errorf("stopped %t, error %v", w.stopped(), err)
		}
	})
	t.Run("a template that JobSet does not let change", func(t *testing.T) {
		w := newFixture(t, gang(), torch(), trainJob(suspend(false)))
		w.settle()
		inner, ok := w.Client.(client.WithWatch)
		if !ok {
			t.Fatalf("the fake is a %T", w.Client)
		}
		w.Client = interceptor.NewClient(inner, interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				if named, ok := o.(interface{ GetKind() string }); ok && named.GetKind() == "JobSet" {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "JobSet"}, "train", nil)
				}
				return c.Apply(ctx, o, opts...)
			},
		})
		w.say(func(status *jobsetv1alpha2.JobSetStatus) {
			status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "node", Active: 1}}
		})
		w.change(patchAccount)
		w.change(suspend(true))
		if _, err := w.reconcile(); err != nil || !w.stopped() {
			t.Errorf("stopped %t, error %v", w.stopped(), err)
		}
	})
}

func hostfile(t *testing.T, w *fixture) (*corev1.ConfigMap, error) {
	t.Helper()
	var config corev1.ConfigMap
	err := w.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "train-mpi-hostfile"}, &config)
	return &config, err
}

func TestConfigMap_ForeignIsNotTaken(t *testing.T) {
	theirs := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-mpi-hostfile"},
		Data:       map[string]string{"hostfile": "theirs"},
	}
	w := newFixture(t, plan.Options{}, mpi(), trainJob(), theirs)
	if _, err := w.reconcile(); !errors.Is(err, trainjob.ErrForeign) {
		t.Errorf("error %v, want ErrForeign", err)
	}
	if now, err := hostfile(t, w); err != nil || len(now.OwnerReferences) > 0 || now.Data["hostfile"] != "theirs" {
		t.Errorf("it is %v of %v now (%v)", now.Data, now.OwnerReferences, err)
	}
}

// A launcher that starts anew would wait for its hostfile for ever.
func TestConfigMap_DeletedIsRecreated(t *testing.T) {
	w := newFixture(t, plan.Options{}, mpi(), trainJob(suspend(false)))
	w.start()
	config, err := hostfile(t, w)
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	if len(w.writes) > 0 {
		t.Errorf("writes %v in the steady state", w.writes)
	}
	if err = w.Client.Delete(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if _, err = hostfile(t, w); err != nil {
		t.Error(err)
	}
}
