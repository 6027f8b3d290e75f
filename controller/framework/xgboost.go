package framework

import (
	"fmt"
	"slices"
	"strconv"

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
func (XGBoost) Validate(input Input, spec *field.Path) field.ErrorList {
	reserved := []string{xgboostTracker, xgboostTrackerPort, xgboostTask, xgboostWorkers}
	faults := input.refuseUncounted(spec)
	for i, variable := range input.Env {
		if slices.Contains(reserved, variable.Name) {
			faults = append(faults, field.Forbidden(spec.Child("trainer", "env").Index(i),
				variable.Name+" is reserved for the XGBoost runtime"))
		}
	}
	return faults
}

// workers returns the number of workers on each node: the job's number, or one for each GPU. A container with an
// unknown command starts one, whatever its GPUs.
func (x XGBoost) workers(input Input) int64 {
	if len(input.command()) == 0 {
		return 1
	}
	return x.wanted(input)
}

func (XGBoost) wanted(input Input) int64 {
	if input.Processes != nil {
		return int64(*input.Processes)
	}
	return max(1, input.GPUs)
}

// perGPU was the helper by which users of earlier releases started a worker for each GPU.
const perGPU = "/lockstep/per-gpu"

// Contribute returns the variables that Rabit reads. The task id is the pod's; where a node has several workers, the
// container's shell starts them, each with a task id of its own. Rabit tries to connect again, but ends if it asks for
// the tracker's name before DNS has it.
func (x XGBoost) Contribute(input Input) Contribution {
	workers, command := x.workers(input), input.command()
	out := Contribution{
		Env: []corev1.EnvVar{
			text(xgboostTracker, input.Leader()),
			number(xgboostTrackerPort, int64(port)),
			rank(xgboostTask),
			number(xgboostWorkers, int64(input.Nodes)*workers),
		},
		Ports: []int32{port},
	}
	helped := len(command) > 0 && command[0] == perGPU
	if wanted := x.wanted(input); wanted > 1 || helped {
		gpus := strconv.FormatInt(input.GPUs, 10)
		if input.Claimed && input.GPUs == 0 {
			gpus = "count"
		}
		out.Wraps = []Wrap{
			{
				Drop:  perGPU,
				Words: shellWords("per-gpu", perGPUScript, strconv.FormatInt(workers, 10), gpus),
				Missing: fmt.Sprintf(
					"XGBoost: one worker on each node instead of %d: neither the job nor its runtime has a command, "+
						"and what the image's entrypoint starts cannot be started %d times; set spec.trainer.command",
					wanted,
					wanted,
				),
			},
		}
	}
	if input.Nodes > 1 {
		out.Wraps = append(out.Wraps, Wrap{
			Words: shellWords("await-names", awaitNamesScript, namesPatience, input.Leader()),
			Missing: "XGBoost: workers do not wait until the tracker's name is in DNS, and end without it: neither the job nor its runtime has a " +
				"command, and the image's entrypoint is not known; set spec.trainer.command",
		})
	}
	return out
}
