package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
)

// render returns the JobSet as upstream would render it; a gang's additions follow.
func (d *draft) render() *jobsetv1alpha2.JobSet {
	contribution := d.framework.Contribute(d.input)
	first := d.firstTrainer()
	for i := range d.spec.ReplicatedJobs {
		replicated := &d.spec.ReplicatedJobs[i]
		count := d.podsPerJob(i)
		replicated.Template.Spec.Parallelism = new(count)
		replicated.Template.Spec.Completions = new(count)
		inject(replicated, contribution.Injections)
		switch ancestor(*replicated) {
		case trainerv1alpha1.AncestorTrainer:
			own := framework.Contribution{}
			if i == first {
				own = contribution
				own.Env = slices.Concat(own.Env, d.statusEnv())
			}
			d.renderTrainer(replicated, own)
		case trainerv1alpha1.AncestorDatasetInitializer, trainerv1alpha1.AncestorModelInitializer:
			d.renderInitializer(replicated)
		}
		if contribution.Companion != "" && replicated.Name == contribution.Companion {
			d.renderCompanion(replicated, contribution)
		}
		add(replicated, contribution.Parts)
		if i == first {
			d.joinStatus(replicated)
			d.makeElastic(replicated)
		}
	}
	d.warnings = append(d.warnings, contribution.Warnings...)
	d.wrap(contribution.Wraps)
	d.spec.Suspend = clone(d.job.Spec.Suspend)
	// A JobSet that is deleted before its job's end is recorded would be created again, and the training with it.
	d.spec.TTLSecondsAfterFinished = nil
	return &jobsetv1alpha2.JobSet{
		TypeMeta: metav1.TypeMeta{
			APIVersion: jobsetv1alpha2.GroupVersion.String(),
			Kind:       "JobSet",
		},
		ObjectMeta: metav1.ObjectMeta{
			Name:            d.job.Name,
			Namespace:       d.job.Namespace,
			Labels:          d.labels,
			Annotations:     d.annotations,
			OwnerReferences: Owners(d.job),
		},
		Spec: d.spec,
	}
}

// firstTrainer is the index of the ReplicatedJob that counts as the trainer, or -1.
func (d *draft) firstTrainer() int {
	return slices.IndexFunc(d.spec.ReplicatedJobs, func(replicated jobsetv1alpha2.ReplicatedJob) bool {
		return ancestor(replicated) == trainerv1alpha1.AncestorTrainer
	})
}

// podsPerJob returns the number of pods of each Job of the ReplicatedJob at index i.
func (d *draft) podsPerJob(i int) int32 { return d.input.Roles[i].Pods }

// decidePodsPerJob computes what podsPerJob later returns.
func (d *draft) decidePodsPerJob(i int) int32 {
	if sizer, ok := d.framework.(framework.Sizer); ok {
		return max(1, sizer.Pods(d.input, d.input.Roles[i]))
	}
	if i == d.firstTrainer() && (trainerOf(d.job).NumNodes != nil || d.span.isElastic() || d.input.Slices > 1) {
		return max(1, d.input.Nodes/d.input.Slices)
	}
	return d.input.Roles[i].Pods
}

// renderTrainer writes the job's trainer settings, and the framework's contribution, into the main container.
func (d *draft) renderTrainer(replicated *jobsetv1alpha2.ReplicatedJob, contribution framework.Contribution) {
	container := mainContainer(replicated, trainerv1alpha1.NodeName)
	if container == nil {
		return
	}
	trainer := trainerOf(d.job)
	if trainer.Image != nil {
		container.Image = *trainer.Image
	}
	if trainer.Command != nil {
		container.Command = slices.Clone(trainer.Command)
	}
	if contribution.Command != nil {
		container.Command = contribution.Command
	}
	if trainer.Args != nil {
		container.Args = slices.Clone(trainer.Args)
	}
	if contribution.TakesArgs {
		container.Args = nil
	}
	// The user's variables are merged a second time, last: their position stays, and they win.
	layers := [][]corev1.EnvVar{trainer.Env, contribution.Env, trainer.Env}
	if contribution.BeforeUser {
		layers = layers[1:]
	}
	for _, layer := range layers {
		container.Env = upsertEnv(container.Env, layer)
	}
	container.Ports = upsertPorts(container.Ports, contribution.Ports)
}

// renderCompanion lets the job's image, and if it trains the job's variables, reach the pods that the trainer commands.
func (d *draft) renderCompanion(replicated *jobsetv1alpha2.ReplicatedJob, contribution framework.Contribution) {
	container := mainContainer(replicated, trainerv1alpha1.NodeName)
	if container == nil || ancestor(*replicated) == trainerv1alpha1.AncestorTrainer {
		return
	}
	trainer := trainerOf(d.job)
	if trainer.Image != nil {
		container.Image = *trainer.Image
	}
	if contribution.CompanionTrains {
		container.Env = upsertEnv(container.Env, trainer.Env)
	}
}

// wrap runs the framework's script before the commands of main containers, whichever object gave those commands.
func (d *draft) wrap(wraps []framework.Wrap) {
	for _, wrap := range wraps {
		i := position(d.spec.ReplicatedJobs, wrap.Role)
		if wrap.Role == "" {
			i = d.firstTrainer()
		}
		if i < 0 {
			continue
		}
		container := mainContainer(&d.spec.ReplicatedJobs[i], trainerv1alpha1.NodeName)
		if container == nil {
			continue
		}
		command := container.Command
		if len(command) == 0 {
			d.warnings = append(d.warnings, wrap.Missing)
			continue
		}
		if wrap.Drop != "" && command[0] == wrap.Drop {
			command = command[1:]
		}
		container.Command = slices.Concat(wrap.Words, command)
	}
}

// add gives the pods the framework's volumes and mounts. A volume of the same name, or a mount at the same path, is
// replaced in its place.
func add(replicated *jobsetv1alpha2.ReplicatedJob, parts []framework.PodParts) {
	pod := &replicated.Template.Spec.Template.Spec
	for _, part := range parts {
		if !slices.Contains(part.Roles, replicated.Name) {
			continue
		}
		for _, volume := range part.Volumes {
			pod.Volumes = upsert(
				pod.Volumes,
				*volume.DeepCopy(),
				func(o corev1.Volume) bool { return o.Name == volume.Name },
			)
		}
		container := mainContainer(replicated, trainerv1alpha1.NodeName)
		for _, init := range part.InitContainers {
			added := init.DeepCopy()
			if container != nil { // an initializer may do no more than the trainer
				added.SecurityContext = container.SecurityContext.DeepCopy()
			}
			pod.InitContainers = append(pod.InitContainers, *added)
		}
		if container == nil {
			continue
		}
		for _, mount := range part.Mounts {
			container.VolumeMounts = upsert(container.VolumeMounts, *mount.DeepCopy(), func(o corev1.VolumeMount) bool {
				return o.MountPath == mount.MountPath
			})
		}
	}
}

// renderInitializer writes the job's settings of a dataset or a model into the container that fetches it.
func (d *draft) renderInitializer(replicated *jobsetv1alpha2.ReplicatedJob) {
	container := mainContainer(replicated, ancestor(*replicated))
	if container == nil || d.job.Spec.Initializer == nil {
		return
	}
	var source trainerv1alpha1.DatasetInitializer
	wanted := d.job.Spec.Initializer
	switch {
	case ancestor(*replicated) == trainerv1alpha1.AncestorDatasetInitializer && wanted.Dataset != nil:
		source = *wanted.Dataset
	case ancestor(*replicated) == trainerv1alpha1.AncestorModelInitializer && wanted.Model != nil:
		source = trainerv1alpha1.DatasetInitializer(*wanted.Model)
	}
	if source.StorageURI != nil {
		container.Env = upsertEnv(container.Env, []corev1.EnvVar{
			{Name: trainerv1alpha1.EnvStorageURI, Value: *source.StorageURI},
		})
	}
	container.Env = upsertEnv(container.Env, source.Env)
	if source.SecretRef != nil {
		container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *source.SecretRef},
		})
	}
	if d.streamed() && ancestor(*replicated) == trainerv1alpha1.AncestorDatasetInitializer {
		d.warnings = append(d.warnings, uncached(container)...)
	}
}

// inject adds env to the containers that injections name, before the job's own; regular containers are searched before
// init containers.
func inject(replicated *jobsetv1alpha2.ReplicatedJob, injections []framework.Injection) {
	pod := &replicated.Template.Spec.Template.Spec
	for _, injection := range injections {
		if injection.Role != replicated.Name {
			continue
		}
		for _, containers := range [][]corev1.Container{pod.Containers, pod.InitContainers} {
			i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == injection.Container })
			if i >= 0 {
				containers[i].Env = upsertEnv(containers[i].Env, injection.Env)
				break
			}
		}
	}
}

// upsertEnv sets variables by name: an existing one is replaced in its place, others are appended.
func upsertEnv(env, add []corev1.EnvVar) []corev1.EnvVar {
	for _, variable := range add {
		env = upsert(env, *variable.DeepCopy(), func(e corev1.EnvVar) bool { return e.Name == variable.Name })
	}
	return env
}

// upsert puts an item in the place of the first that is the same, or at the end.
func upsert[T any](items []T, item T, same func(T) bool) []T {
	if i := slices.IndexFunc(items, same); i >= 0 {
		items[i] = item
		return items
	}
	return append(items, item)
}

// upsertPorts opens ports. Upstream recognizes a port by its number or its name, and so takes any nameless port for its
// own nameless port; JobSets must be equal, so we do the same.
func upsertPorts(ports []corev1.ContainerPort, add []int32) []corev1.ContainerPort {
	for _, number := range add {
		i := slices.IndexFunc(ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == number })
		if i < 0 {
			i = slices.IndexFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == "" })
		}
		if i >= 0 {
			ports[i] = corev1.ContainerPort{ContainerPort: number}
			continue
		}
		ports = append(ports, corev1.ContainerPort{ContainerPort: number})
	}
	return ports
}

// Owners makes a TrainJob the controller of its objects. The stored version is used, whichever is preferred.
func Owners(job *trainerv1alpha1.TrainJob) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(job, TrainJobKind())}
}

// TrainJobKind is the kind by which a TrainJob owns its objects.
func TrainJobKind() schema.GroupVersionKind {
	return trainerv1alpha1.GroupVersion().WithKind(trainerv1alpha1.TrainJobKind)
}

func clone[T any](value *T) *T {
	if value == nil {
		return nil
	}
	return new(*value)
}
