package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
)

// inputOf returns the frameworks' view of the job. spec is the patched one.
func inputOf(
	job *trainerv1alpha1.TrainJob, runtime Runtime, spec jobsetv1alpha2.JobSetSpec, options Options,
) framework.Input {
	trainer := trainerOf(job)
	resources := nodeResources(spec)
	claimed := len(resources.Claims) > 0
	if trainer.ResourcesPerNode != nil {
		// For counting, the job's resources replace the runtime's; for rendering they are merged. Upstream's rule.
		resources = *trainer.ResourcesPerNode
	}
	input := framework.Input{
		Job:        job.Name,
		Namespace:  job.Namespace,
		Runtime:    runtime.Name,
		Policy:     policyOf(runtime),
		Nodes:      1,
		Slices:     1,
		Processes:  trainer.NumProcPerNode,
		GPUs:       gpus(resources),
		CPUs:       cpus(resources),
		Claimed:    claimed,
		Env:        trainer.Env,
		Args:       trainer.Args,
		JobCommand: trainer.Command,

		NodesGiven:   trainer.NumNodes != nil,
		Subdomain:    job.Name,
		SecretSuffix: options.SecretSuffix,
	}
	if spec.Network != nil && spec.Network.Subdomain != "" {
		input.Subdomain = spec.Network.Subdomain
	}
	for i := range spec.ReplicatedJobs {
		if ancestor(spec.ReplicatedJobs[i]) == trainerv1alpha1.AncestorTrainer {
			addTrainer(&input, &spec.ReplicatedJobs[i])
			break
		}
	}
	if runtime.Spec.MLPolicy != nil && runtime.Spec.MLPolicy.NumNodes != nil {
		input.Nodes = *runtime.Spec.MLPolicy.NumNodes
	}
	if trainer.NumNodes != nil {
		input.Nodes = *trainer.NumNodes
	}
	for _, replicated := range spec.ReplicatedJobs {
		input.Roles = append(input.Roles, framework.Role{
			Name:       replicated.Name,
			Trains:     ancestor(replicated) == trainerv1alpha1.AncestorTrainer,
			Containers: containerNames(replicated.Template.Spec.Template.Spec),
			Replicas:   max(1, replicated.Replicas),
			Pods:       max(1, ptr.Deref(podsOf(replicated, runtime), 1)),
		})
	}
	return input
}

// addTrainer adds what the ReplicatedJob that trains says of its slices and its main container.
func addTrainer(input *framework.Input, trainer *jobsetv1alpha2.ReplicatedJob) {
	pod := trainer.Template.Spec.Template.Spec
	input.Slices = max(1, trainer.Replicas)
	input.TPU = chipsOf(pod) > 0
	if main := mainContainer(trainer, trainerv1alpha1.NodeName); main != nil {
		input.WithoutToken = !ptr.Deref(pod.AutomountServiceAccountToken, true)
		// Rendering changes the container's variables in place.
		input.Command, input.RuntimeArgs, input.RuntimeEnv = main.Command, main.Args, slices.Clone(main.Env)
	}
}

// podsOf returns the runtime's number of pods of each Job of a ReplicatedJob; nil if it states none.
func podsOf(replicated jobsetv1alpha2.ReplicatedJob, runtime Runtime) *int32 {
	if ancestor(replicated) == trainerv1alpha1.AncestorTrainer && runtime.Spec.MLPolicy != nil {
		return runtime.Spec.MLPolicy.NumNodes
	}
	return replicated.Template.Spec.Parallelism
}

func containerNames(pod corev1.PodSpec) []string {
	var names []string
	for _, container := range slices.Concat(pod.Containers, pod.InitContainers) {
		names = append(names, container.Name)
	}
	return names
}

// nodeResources are those of the main container of the first ReplicatedJob that is called node or trains, even if they
// are empty. So a launcher in front of the nodes hides their GPUs; upstream's rule.
func nodeResources(spec jobsetv1alpha2.JobSetSpec) corev1.ResourceRequirements {
	for i := range spec.ReplicatedJobs {
		replicated := &spec.ReplicatedJobs[i]
		if replicated.Name != trainerv1alpha1.NodeName && ancestor(*replicated) != trainerv1alpha1.AncestorTrainer {
			continue
		}
		if container := mainContainer(replicated, trainerv1alpha1.NodeName); container != nil {
			return container.Resources
		}
	}
	return corev1.ResourceRequirements{}
}

func ancestor(replicated jobsetv1alpha2.ReplicatedJob) string {
	return replicated.Template.Labels[trainerv1alpha1.LabelAncestor]
}

// gpus returns the amount of the first resource, in the order of names, whose name contains "gpu".
func gpus(resources corev1.ResourceRequirements) int64 {
	for _, list := range []corev1.ResourceList{resources.Requests, resources.Limits} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			quantity := list[name]
			if count := quantity.Value(); count > 0 && strings.Contains(strings.ToLower(string(name)), "gpu") {
				return count
			}
		}
	}
	return 0
}

// cpus counts CPUs, rounded up.
func cpus(resources corev1.ResourceRequirements) int64 {
	requested, limit := resources.Requests[corev1.ResourceCPU], resources.Limits[corev1.ResourceCPU]
	return cmp.Or(requested.Value(), limit.Value())
}

// mergeResources merges want into the resources of each trainer's main container, resource by resource. Unlike
// upstream, which loses them, it retains the runtime's claims and adds the job's.
func mergeResources(spec *jobsetv1alpha2.JobSetSpec, want *corev1.ResourceRequirements, companion string) {
	if want == nil {
		return
	}
	for i := range spec.ReplicatedJobs {
		container := nodeContainer(&spec.ReplicatedJobs[i], companion)
		if container == nil {
			continue
		}
		container.Resources.Limits = mergeQuantities(container.Resources.Limits, want.Limits)
		container.Resources.Requests = mergeQuantities(container.Resources.Requests, want.Requests)
		for _, claim := range want.Claims {
			if !slices.Contains(container.Resources.Claims, claim) {
				container.Resources.Claims = append(container.Resources.Claims, claim)
			}
		}
	}
}

func mergeQuantities(base, top corev1.ResourceList) corev1.ResourceList {
	if len(base)+len(top) == 0 {
		return nil
	}
	merged := make(corev1.ResourceList, len(base)+len(top))
	maps.Copy(merged, base)
	maps.Copy(merged, top)
	return merged
}

// mainContainer is the first container called name, or nil.
func mainContainer(replicated *jobsetv1alpha2.ReplicatedJob, name string) *corev1.Container {
	containers := replicated.Template.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &containers[i]
}
