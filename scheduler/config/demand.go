package config

import (
	"cmp"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Demand selects the way in which waiting gangs are reported to node autoscalers. It holds for all profiles of the
// scheduler.
type Demand struct {
	// Mode is pods, gangs or none. The default is pods.
	Mode DemandMode `json:"mode,omitempty"`
	// Class is the provisioningClassName of ProvisioningRequests. The default is DefaultProvisioningClass.
	Class string `json:"class,omitempty"`
}

// DemandMode selects the objects by which node autoscalers see waiting gangs.
type DemandMode string

const (
	// DemandPods marks each member as unschedulable, as kube-scheduler does: autoscalers make nodes pod by pod.
	DemandPods DemandMode = "pods"
	// DemandGangs shows autoscalers no members, and one ProvisioningRequest for each gang, where these are served.
	DemandGangs DemandMode = "gangs"
	// DemandNone shows autoscalers nothing.
	DemandNone DemandMode = "none"
)

// DefaultProvisioningClass makes nodes for all pods of a request or for none.
const DefaultProvisioningClass = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"

func (d *Demand) setDefaults() {
	d.Mode, d.Class = cmp.Or(d.Mode, DemandPods), cmp.Or(d.Class, DefaultProvisioningClass)
}

func (d *Demand) validate() field.ErrorList {
	var faults field.ErrorList
	at := field.NewPath("demand")
	switch d.Mode {
	case DemandPods, DemandGangs, DemandNone:
	default:
		faults = append(
			faults,
			field.NotSupported(at.Child("mode"), d.Mode, []DemandMode{DemandPods, DemandGangs, DemandNone}),
		)
	}
	for _, fault := range apivalidation.NameIsDNSSubdomain(d.Class, false) {
		faults = append(faults, field.Invalid(at.Child("class"), d.Class, fault))
	}
	return faults
}
