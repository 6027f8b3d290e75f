package framework

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// Plain is a job with processes that need not find each other.
type Plain struct{}

// Name is the framework's name.
func (Plain) Name() string { return "plain" }

// Selects accepts every policy.
func (Plain) Selects(trainerv1alpha1.MLPolicySource) bool { return true }

// Validate has nothing to check.
func (Plain) Validate(Input, *field.Path) field.ErrorList { return nil }

// Contribute adds nothing.
func (Plain) Contribute(Input) Contribution { return Contribution{} }
