package config

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
)

// Health returns the rules that close a node.
func (a GangPlacementArgs) Health() nodehealth.Rules {
	if a.UnhealthyConditions == nil {
		return nodehealth.Default()
	}
	var rules nodehealth.Rules
	for _, c := range a.UnhealthyConditions {
		rules.Conditions = append(rules.Conditions, nodehealth.Condition{
			Type:   corev1.NodeConditionType(c.Type),
			Status: cmp.Or(corev1.ConditionStatus(c.Status), corev1.ConditionTrue),
		})
	}
	return rules
}

// Strikes returns the limits of quarantine. The arguments must be those that Placement has returned.
func (a GangPlacementArgs) Strikes() nodehealth.Limits {
	return nodehealth.Limits{HalfLife: a.Quarantine.HalfLife.Duration, MostPercent: int(*a.Quarantine.MostPercent)}
}

func (a GangPlacementArgs) validateHealth() field.ErrorList {
	var faults field.ErrorList
	for i, c := range a.UnhealthyConditions {
		at := field.NewPath("unhealthyConditions").Index(i)
		if c.Type == "" {
			faults = append(faults, field.Required(at.Child("type"), "the type of a node condition"))
		}
		if c.Type == string(corev1.NodeReady) {
			faults = append(
				faults,
				field.Invalid(at.Child("type"), c.Type, "the taints of nodes that are not ready close them already"),
			)
		}
		switch corev1.ConditionStatus(c.Status) {
		case "", corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
		default:
			faults = append(
				faults,
				field.NotSupported(at.Child("status"), c.Status, []string{"True", "False", "Unknown"}),
			)
		}
	}
	at := field.NewPath("quarantine")
	if half := a.Quarantine.HalfLife.Duration; half < 0 {
		faults = append(faults, field.Invalid(at.Child("halfLife"), half.String(), "it must not be negative"))
	}
	if most := *a.Quarantine.MostPercent; most < 0 || most > 100 {
		faults = append(faults, field.Invalid(at.Child("mostPercent"), most, "it must be between 0 and 100"))
	}
	return faults
}
