package class_test

import (
	"testing"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
)

// For any managedBy of a job, at most one of Kubeflow Trainer and a controller of class Chosen handles it.
func TestClass_Handles(t *testing.T) {
	for manager, want := range map[string]struct{ all, chosen, trainer bool }{
		"": {all: true, trainer: true},
		"trainer.kubeflow.org/trainjob-controller": {all: true, trainer: true},
		"lockstep.dev/trainjob-controller":         {all: true, chosen: true},
		"kueue.x-k8s.io/multikueue":                {},
	} {
		job := &trainerv1alpha1.TrainJob{}
		if manager != "" {
			job.Spec.ManagedBy = new(manager)
		}
		if got := (class.Class{Choice: class.All}).Handles(
			job,
		); got != want.all ||
			(class.Class{}).Handles(job) != got {
			t.Errorf("all handles managedBy %q: %t", manager, got)
		}
		if got := (class.Class{Choice: class.Chosen}).Handles(job); got != want.chosen || got && want.trainer {
			t.Errorf("chosen handles managedBy %q: %t", manager, got)
		}
	}
}

func TestClass_Chooses(t *testing.T) {
	lockstep := map[string]string{"lockstep.dev/trainer": "lockstep"}
	other := map[string]string{"lockstep.dev/trainer": "kubeflow"}
	for name, c := range map[string]struct {
		runtime, namespace map[string]string
		want               bool
	}{
		"neither":                        {},
		"its runtime":                    {runtime: lockstep, want: true},
		"its namespace":                  {namespace: lockstep, want: true},
		"its runtime not":                {runtime: other, namespace: lockstep},
		"its runtime, its namespace not": {runtime: lockstep, namespace: other, want: true},
	} {
		if got := (class.Class{Choice: class.Chosen}).Chooses(c.runtime, c.namespace); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if (class.Class{Choice: class.All}).Chooses(c.runtime, c.namespace) {
			t.Errorf("%s: the class of all jobs chooses", name)
		}
	}
}

// A class of some namespaces is made of their jobs alone.
func TestClass_OfNamespaces(t *testing.T) {
	some := class.Class{Namespaces: []string{"a", "b"}}
	for namespace, want := range map[string]bool{"a": true, "b": true, "c": false, "": false} {
		job := &trainerv1alpha1.TrainJob{}
		job.Namespace = namespace
		if some.Serves(namespace) != want || some.Handles(job) != want {
			t.Errorf("namespace %q: %t and %t, want %t", namespace, some.Serves(namespace), some.Handles(job), want)
		}
		if all := (class.Class{}); !all.Serves(namespace) || !all.Handles(job) {
			t.Errorf("namespace %q is not among all", namespace)
		}
	}
}
