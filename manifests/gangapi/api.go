package gangapi

import (
	"fmt"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// API names the API of a cluster's gangs.
type API string

const (
	// Native is Kubernetes' own API of PodGroups, scheduling.k8s.io.
	Native API = "native"
	// NativeV1 is the same at version v1, where the API server serves no older one. It is not chosen: Native means it
	// there.
	NativeV1 API = "native-v1"
	// Resources is the custom resource PodGroup of group scheduling.lockstep.dev, which any cluster serves.
	Resources API = "resources"
)

const (
	// Group is the API group of the custom resource. It is not lockstep.dev, whose virtual resources grant rights: a
	// role with every resource of the group would grant those, too.
	Group = "scheduling.lockstep.dev"
	// Kind is the kind of a gang in either API.
	Kind = "PodGroup"
	// Plural is the name of its resource.
	Plural = "podgroups"
	// Finalizer protects a PodGroup until its pods have ended, as podgroup-protection does in kube-controller-manager
	// for native pods.
	Finalizer = Group + "/podgroup-protection"
)

// Version returns the group and version of the API's PodGroups.
func (a API) Version() schema.GroupVersion {
	switch a {
	case Resources:
		return schema.GroupVersion{Group: Group, Version: "v1beta1"}
	case NativeV1:
		return schema.GroupVersion{Group: schedulingv1beta1.GroupName, Version: "v1"}
	default:
		return schedulingv1beta1.SchemeGroupVersion
	}
}

// kept returns the stored form of an API: a cluster that is upgraded may serve another version.
func (a API) kept() API {
	if a == NativeV1 {
		return Native
	}
	return a
}

// Resource returns the resource of the API's PodGroups.
func (a API) Resource() schema.GroupVersionResource { return a.Version().WithResource(Plural) }

// GroupKind returns the kind of the API's PodGroups.
func (a API) GroupKind() schema.GroupVersionKind { return a.Version().WithKind(Kind) }

// AddToScheme returns a function that registers the native Go types under the API's names. A Go type has one name in a
// scheme: a scheme with all of client-go's types has the native ones already.
func (a API) AddToScheme() func(*runtime.Scheme) error {
	if a == Native || a == "" {
		return schedulingv1beta1.AddToScheme
	}
	return func(scheme *runtime.Scheme) error {
		version := a.Version()
		scheme.AddKnownTypeWithName(version.WithKind(Kind), &schedulingv1beta1.PodGroup{})
		scheme.AddKnownTypeWithName(version.WithKind(Kind+"List"), &schedulingv1beta1.PodGroupList{})
		if a == NativeV1 {
			scheme.AddKnownTypeWithName(version.WithKind("Workload"), &schedulingv1beta1.Workload{})
			scheme.AddKnownTypeWithName(version.WithKind("WorkloadList"), &schedulingv1beta1.WorkloadList{})
		}
		metav1.AddToGroupVersion(scheme, version)
		return nil
	}
}

// Parse reads an API from a flag; auto is "".
func Parse(text string) (API, error) {
	switch text {
	case "auto", "":
		return "", nil
	case string(Native), string(Resources):
		return API(text), nil
	}
	return "", fmt.Errorf("--gang-api=%s: there is no such API; use auto, %s or %s", text, Native, Resources)
}
