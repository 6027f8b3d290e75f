package fakecluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// ComputeDomain is the kind with which NVIDIA's driver connects nodes by NVLink, with the fields that are read here.
type ComputeDomain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec ComputeDomainSpec `json:"spec"`
}

// ComputeDomainSpec is the request of a ComputeDomain.
type ComputeDomainSpec struct {
	NumNodes int                  `json:"numNodes"`
	Channel  ComputeDomainChannel `json:"channel"`
}

// ComputeDomainChannel names the claim template that the driver makes.
type ComputeDomainChannel struct {
	ResourceClaimTemplate struct {
		Name string `json:"name"`
	} `json:"resourceClaimTemplate"`
	AllocationMode string `json:"allocationMode,omitempty"`
}

// DeepCopyObject returns a copy.
func (d *ComputeDomain) DeepCopyObject() runtime.Object { //nolint:ireturn // as declared
	out := *d
	out.ObjectMeta = *d.DeepCopy()
	return &out
}

// AddComputeDomains makes the kind known to a scheme.
func AddComputeDomains(scheme *runtime.Scheme) {
	scheme.AddKnownTypeWithName(plan.ComputeDomainKind(), &ComputeDomain{})
}
