package resolve

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// Reference is a TrainJob's runtime with the API's defaults filled in.
type Reference struct {
	// Group and Kind are those of the runtime, known or not.
	Group, Kind string
	// Key has a namespace only for the namespaced kind.
	Key types.NamespacedName
}

// ReferenceOf returns the runtime that a job names, or that the API's defaults name.
func ReferenceOf(job *trainerv1alpha1.TrainJob) Reference {
	ref := job.Spec.RuntimeRef
	result := Reference{
		Group: trainerv1alpha1.Group,
		Kind:  trainerv1alpha1.ClusterTrainingRuntimeKind,
		Key:   types.NamespacedName{Name: ref.Name},
	}
	if ref.APIGroup != nil {
		result.Group = cmp.Or(*ref.APIGroup, result.Group)
	}
	if ref.Kind != nil {
		result.Kind = cmp.Or(*ref.Kind, result.Kind)
	}
	if result.Kind == trainerv1alpha1.TrainingRuntimeKind {
		result.Key.Namespace = job.Namespace
	}
	return result
}

// String is the reference as an index key.
func (r Reference) String() string {
	return r.Kind + "." + r.Group + "/" + r.Key.String()
}

// name returns the runtime's name in messages to users.
func (r Reference) name() string {
	return r.Kind + " " + strings.TrimPrefix(r.Key.String(), "/")
}
