package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of all kinds of this package.
	Group = "state.lockstep.dev"
	// Version is the only version of them.
	Version = "v1alpha1"
	// FrozenTrainJobResource is the resource under which FrozenTrainJobs are served.
	FrozenTrainJobResource = "frozentrainjobs"
)

// GroupVersion is the group and version of the kinds of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme adds the kinds of this package to scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &FrozenTrainJob{}, &FrozenTrainJobList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
