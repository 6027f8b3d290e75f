// Package class selects the TrainJobs that this controller handles, and the new ones that are to be its own where
// another controller of TrainJobs runs beside it.
package class

import (
	"slices"

	"k8s.io/utils/ptr"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// Choice is a set of TrainJobs by their managedBy; empty is All.
type Choice string

const (
	// All are the TrainJobs that name no other controller: there is no Kubeflow Trainer, or it does not lead.
	All Choice = "all"
	// Chosen are the TrainJobs that name Lockstep's controller. Kubeflow Trainer (2.3 and later) leaves those alone,
	// and has all others.
	Chosen Choice = "chosen"
)

// Class is the set of TrainJobs for which a controller is responsible. The zero value is All of every namespace.
type Class struct {
	Choice Choice
	// Namespaces are the namespaces of its jobs; empty for all.
	Namespaces []string
}

// Serves reports whether jobs of a namespace can be of this class.
func (c Class) Serves(namespace string) bool {
	return len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, namespace)
}

// Handles reports whether the controller of this class is responsible for a job. It touches no other job.
func (c Class) Handles(job *trainerv1alpha1.TrainJob) bool {
	return c.Serves(job.Namespace) && c.Choice.handles(ptr.Deref(job.Spec.ManagedBy, trainerv1alpha1.DefaultManagedBy))
}

func (c Choice) handles(manager string) bool {
	return manager == trainerv1alpha1.LockstepManagedBy || c != Chosen && manager == trainerv1alpha1.DefaultManagedBy
}

// MayChoose reports whether a new job can become Lockstep's: it names no other controller but the one that the cluster
// has.
func (c Class) MayChoose(job *trainerv1alpha1.TrainJob) bool {
	return c.Choice == Chosen && c.Serves(job.Namespace) &&
		ptr.Deref(job.Spec.ManagedBy, trainerv1alpha1.DefaultManagedBy) == trainerv1alpha1.DefaultManagedBy
}

// Chooses reports whether a new job is to be Lockstep's: by the label of its runtime, or of its namespace if the
// runtime has none. Only a controller of class Chosen chooses.
func (c Class) Chooses(runtime, namespace map[string]string) bool {
	if c.Choice != Chosen {
		return false
	}
	chosen, ok := runtime[trainerv1alpha1.LabelTrainer]
	if !ok {
		chosen = namespace[trainerv1alpha1.LabelTrainer]
	}
	return chosen == trainerv1alpha1.TrainerLockstep
}
