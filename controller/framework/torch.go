package framework

import (
	"fmt"
	"net"
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
	torchRendezvous = "PET_RDZV_BACKEND"
	torchEndpoint   = "PET_RDZV_ENDPOINT"
	torchRun        = "PET_RDZV_ID"
	torchRestarts   = "PET_MAX_RESTARTS"
	torchOwnStore   = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
)

// reservedByTorch are the variables of a job that are not the user's to set.
func reservedByTorch(input Input) []string {
	names := []string{torchNodes, torchProcesses, torchRank, torchLeader, torchLeaderPort}
	if input.LeastNodes > 0 {
		names = append(names, torchRendezvous, torchEndpoint, torchRun, torchRestarts, torchOwnStore)
	}
	return names
}

// Torch is PyTorch started by torchrun.
type Torch struct{}

// Name is the framework's name.
func (Torch) Name() string { return "torch" }

// Selects reports whether policy asks for PyTorch.
func (Torch) Selects(policy trainerv1alpha1.MLPolicySource) bool { return policy.Torch != nil }

// Validate refuses the variables that torchrun reads and injection targets that do not exist.
func (Torch) Validate(input Input, spec *field.Path) field.ErrorList {
	var faults field.ErrorList
	reserved := reservedByTorch(input)
	var taken []string
	for _, variable := range input.Env {
		if slices.Contains(reserved, variable.Name) {
			taken = append(taken, variable.Name)
		}
	}
	if len(taken) > 0 {
		slices.Sort(taken)
		faults = append(faults, field.Invalid(spec.Child("trainer", "env"), taken,
			fmt.Sprintf("must not have reserved envs, invalid envs configured: %v", taken)))
	}
	for _, target := range torchTargets(input.Policy) {
		if !input.has(target) {
			faults = append(faults, field.Invalid(spec.Child("runtimeRef"), input.Runtime,
				fmt.Sprintf("envInjection target podSet %q container %q not found in runtime template",
					target.Role, target.Container)))
		}
	}
	return faults
}

// Contribute returns the variables that torchrun reads.
func (Torch) Contribute(input Input) Contribution {
	env := []corev1.EnvVar{
		torchNodeCount(input),
		text(torchProcesses, torchProcessCount(input)),
		rank(torchRank),
		text(torchLeader, input.Leader()),
		number(torchLeaderPort, int64(port)),
	}
	env = append(env, torchMeeting(input)...)
	injections := torchTargets(input.Policy)
	for i := range injections {
		injections[i].Env = env
	}
	return Contribution{Env: env, Ports: []int32{port}, Injections: injections}
}

// Elastic marks torch: torchrun's agents meet again whenever one joins or leaves, with the present number.
func (Torch) Elastic() {}

// torchNodeCount is the number of nodes, or the fewest and the most of them as torchrun reads these.
func torchNodeCount(input Input) corev1.EnvVar {
	if input.LeastNodes > 0 {
		return text(torchNodes, fmt.Sprintf("%d:%d", input.LeastNodes, input.Nodes))
	}
	return number(torchNodes, int64(input.Nodes))
}

// torchMeeting has the agents of an elastic job meet at the store that the first node runs. Its workers start again,
// from their last checkpoint, when a node joins. A node that leaves is a failure for the remaining ones, so that
// torchrun counts it as a restart.
func torchMeeting(input Input) []corev1.EnvVar {
	if input.LeastNodes == 0 {
		return nil
	}
	return []corev1.EnvVar{
		text(torchRendezvous, "c10d"),
		text(torchEndpoint, net.JoinHostPort(input.Leader(), strconv.Itoa(int(port)))),
		text(torchRun, input.Job),
		number(torchRestarts, int64(input.MaxRestarts)),
		// Agents that share the store of the first meeting do not announce it to those that join later: both wait for
		// each other, and fail after a minute (torch 2.9, seen on real nodes).
		number(torchOwnStore, 1),
	}
}

// torchProcessCount is a number or "auto", which lets torchrun count the GPUs that it sees, also those from claims.
// Without GPUs "auto" would start one process for each CPU of the whole node, so it is the container's own CPUs then.
func torchProcessCount(input Input) string {
	switch {
	case input.Processes != nil:
		return strconv.FormatInt(int64(*input.Processes), 10)
	case input.GPUs > 0 || input.Claimed:
		return "auto"
	default:
		return strconv.FormatInt(max(1, input.CPUs), 10)
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

func (w Input) has(target Injection) bool {
	return slices.ContainsFunc(w.Roles, func(role Role) bool {
		return role.Name == target.Role && slices.Contains(role.Containers, target.Container)
	})
}
