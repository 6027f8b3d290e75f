package framework

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// The variables that Rabit, XGBoost's collective library, reads.
const (
	xgboostTracker     = "DMLC_TRACKER_URI"
	xgboostTrackerPort = "DMLC_TRACKER_PORT"
	xgboostTask        = "DMLC_TASK_ID"
	xgboostWorkers     = "DMLC_NUM_WORKER"
)

// XGBoost is XGBoost with one worker for each GPU, or for each node without GPUs.
type XGBoost struct{}

// Name is the framework's name.
func (XGBoost) Name() string { return "xgboost" }

// Selects reports whether policy asks for XGBoost.
func (XGBoost) Selects(policy trainerv1alpha1.MLPolicySource) bool { return policy.XGBoost != nil }

// Validate refuses the variables that Rabit reads.
func (XGBoost) Validate(world World, spec *field.Path) field.ErrorList {
	reserved := []string{xgboostTracker, xgboostTrackerPort, xgboostTask, xgboostWorkers}
	faults := world.refuseUncounted(spec)
	for i, variable := range world.Env {
		if slices.Contains(reserved, variable.Name) {
			faults = append(faults, field.Forbidden(spec.Child("trainer", "env").Index(i),
				variable.Name+" is reserved for the XGBoost runtime"))
		}
	}
	return faults
}

// workers is the number of workers on each node. Where GPUs came by claims, it is what the job says.
func (XGBoost) workers(world World) int64 {
	if world.Claimed && world.GPUs == 0 && world.Processes != nil {
		return int64(*world.Processes)
	}
	return max(1, world.GPUs)
}

// Contribute returns the variables that Rabit reads. The task id is the pod's, while the workers are counted by GPU:
// the workers of one pod tell themselves apart.
func (x XGBoost) Contribute(world World) Contribution {
	return Contribution{
		Env: []corev1.EnvVar{
			text(xgboostTracker, world.Leader()),
			number(xgboostTrackerPort, int64(Port)),
			rank(xgboostTask),
			number(xgboostWorkers, int64(world.Nodes)*x.workers(world)),
		},
		Ports: []int32{Port},
	}
}
