package framework

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// The variables that torchrun reads.
const (
	torchNodes      = "PET_NNODES"
	torchProcesses  = "PET_NPROC_PER_NODE"
	torchRank       = "PET_NODE_RANK"
	torchLeader     = "PET_MASTER_ADDR"
	torchLeaderPort = "PET_MASTER_PORT"
)

// Torch is PyTorch started by torchrun.
type Torch struct{}

// Name is the framework's name.
func (Torch) Name() string { return "torch" }

// Selects reports whether policy asks for PyTorch.
func (Torch) Selects(policy trainerv1alpha1.MLPolicySource) bool { return policy.Torch != nil }

// Validate refuses the variables that torchrun reads and injection targets that do not exist.
func (Torch) Validate(world World, spec *field.Path) field.ErrorList {
	var faults field.ErrorList
	reserved := []string{torchNodes, torchProcesses, torchRank, torchLeader, torchLeaderPort}
	var taken []string
	for _, variable := range world.Env {
		if slices.Contains(reserved, variable.Name) {
			taken = append(taken, variable.Name)
		}
	}
	if len(taken) > 0 {
		slices.Sort(taken)
		faults = append(faults, field.Invalid(spec.Child("trainer", "env"), taken,
			fmt.Sprintf("must not have reserved envs, invalid envs configured: %v", taken)))
	}
	for _, target := range torchTargets(world.Policy) {
		if !world.has(target) {
			faults = append(faults, field.Invalid(spec.Child("runtimeRef"), world.Runtime,
				fmt.Sprintf("envInjection target podSet %q container %q not found in runtime template",
					target.Role, target.Container)))
		}
	}
	return faults
}

// Contribute returns the variables that torchrun reads.
func (Torch) Contribute(world World) Contribution {
	env := []corev1.EnvVar{
		number(torchNodes, int64(world.Nodes)),
		text(torchProcesses, torchProcessCount(world)),
		rank(torchRank),
		text(torchLeader, world.Leader()),
		number(torchLeaderPort, int64(Port)),
	}
	injections := torchTargets(world.Policy)
	for i := range injections {
		injections[i].Env = env
	}
	return Contribution{Env: env, Ports: []int32{Port}, Injections: injections}
}

// torchProcessCount is a number or "auto", which lets torchrun count the GPUs that it sees, also those that came by claims. Without
// GPUs "auto" would start one process for each CPU of the whole node, so it is the container's own CPUs then.
func torchProcessCount(world World) string {
	switch {
	case world.Processes != nil:
		return strconv.FormatInt(int64(*world.Processes), 10)
	case world.GPUs > 0 || world.Claimed:
		return "auto"
	default:
		return strconv.FormatInt(max(1, world.CPUs), 10)
	}
}

func torchTargets(policy trainerv1alpha1.MLPolicySource) []Injection {
	if policy.Torch == nil || policy.Torch.EnvInjection == nil {
		return nil
	}
	var targets []Injection
	for _, target := range policy.Torch.EnvInjection.Targets {
		for _, container := range target.ContainerNames {
			targets = append(targets, Injection{Role: target.JobName, Container: container})
		}
	}
	return targets
}

func (w World) has(target Injection) bool {
	return slices.ContainsFunc(w.Roles, func(role Role) bool {
		return role.Name == target.Role && slices.Contains(role.Containers, target.Container)
	})
}
