package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of all kinds of this package.
	Group = "trainer.kubeflow.org"
	// Version is the version in which objects are stored and in which owner references are written.
	Version = "v1alpha1"

	// TrainJobKind is the kind of a TrainJob.
	TrainJobKind = "TrainJob"
	// TrainingRuntimeKind is the kind of a runtime of one namespace.
	TrainingRuntimeKind = "TrainingRuntime"
	// ClusterTrainingRuntimeKind is the kind of a runtime of the whole cluster.
	ClusterTrainingRuntimeKind = "ClusterTrainingRuntime"
)

// GroupVersion is the group and version of the kinds of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme adds the kinds of this package to scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(
		GroupVersion(),
		&TrainJob{}, &TrainJobList{},
		&TrainingRuntime{}, &TrainingRuntimeList{},
		&ClusterTrainingRuntime{}, &ClusterTrainingRuntimeList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
