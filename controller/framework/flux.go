package framework

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// The variables of the node's container that configure Flux, and their defaults.
const (
	fluxImageVariable  = "FLUX_VIEW_IMAGE"
	fluxDeviceVariable = "FLUX_NETWORK_DEVICE"
	fluxPolicyVariable = "FLUX_QUEUE_POLICY"

	fluxImage  = "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy"
	fluxDevice = "eth0"
	fluxPolicy = "fcfs"
)

// fluxInstaller is the init container that provides Flux.
const fluxInstaller = "flux-installer"

// Flux is the Flux Framework: a broker in each pod, which together are a small cluster manager that runs the job's
// command. An init container provides it, so that the job's image need not have it.
type Flux struct{}

// Name is the framework's name.
func (Flux) Name() string { return "flux" }

// Selects reports whether policy asks for Flux.
func (Flux) Selects(policy trainerv1alpha1.MLPolicySource) bool { return policy.Flux != nil }

// Validate refuses settings that leave Flux without tasks, pods or a name.
func (Flux) Validate(input Input, spec *field.Path) field.ErrorList {
	var faults field.ErrorList
	if input.Processes != nil && *input.Processes < 1 {
		faults = append(faults, field.Invalid(spec.Child("trainer", "numProcPerNode"), *input.Processes,
			"must be greater than or equal to 1 for Flux TrainJob"))
	}
	node := input.role(trainerv1alpha1.NodeName)
	switch {
	case node == nil || !node.Trains:
		faults = append(faults, field.Invalid(
			spec.Child("runtimeRef", "name"),
			input.Runtime,
			"must have a replicated job called node with the label of the trainer, because Flux knows its hosts by that name",
		))
	case slices.Contains(node.Containers, fluxInstaller):
		faults = append(faults, field.Invalid(spec.Child("trainer", "initContainers"), fluxInstaller,
			fmt.Sprintf("InitContainer '%s' is reserved", fluxInstaller)))
	}
	if most := validation.DNS1123LabelMaxLength - len("-"+fluxScripts); len(input.Job) > most {
		faults = append(faults, field.TooLong(field.NewPath("metadata", "name"), input.Job, most))
	}
	return append(faults, validateFluxSettings(fluxSettingsOf(input), spec.Child("trainer", "env"))...)
}

// validateFluxSettings refuses values that would break the file that they are written to.
func validateFluxSettings(settings fluxSettings, env *field.Path) field.ErrorList {
	var faults field.ErrorList
	for _, setting := range [][2]string{
		{fluxDeviceVariable, settings.device}, {fluxPolicyVariable, settings.policy},
	} {
		if !plain(setting[1], "._:@*-") {
			faults = append(faults, field.Invalid(env.Key(setting[0]), setting[1],
				"must be letters, digits and any of . _ : @ * -"))
		}
	}
	return faults
}

// Contribute returns Flux itself, its configuration, and the command that starts it.
func (Flux) Contribute(input Input) Contribution {
	settings := fluxSettingsOf(input)
	return Contribution{
		Command:   []string{"/bin/bash", fluxScriptsDir + "/" + fluxEntrypoint, fluxCommand(input)},
		TakesArgs: true,
		Secrets:   []Secret{{Suffix: fluxCurve, Kind: CURVECertificate}},
		Files: []Files{{Suffix: fluxScripts, Data: map[string]string{
			fluxInit:       settings.initScript(),
			fluxEntrypoint: settings.entrypointScript(),
		}}},
		Parts: []PodParts{fluxParts(input, settings.image)},
	}
}

// fluxSettings are the inputs of the scripts and the pods.
type fluxSettings struct {
	job, namespace, subdomain string
	image, device, policy     string
	// hosts is the number of pods, tasks and gpus are those of each.
	hosts, tasks int32
	gpus         int64
}

func fluxSettingsOf(input Input) fluxSettings {
	settings := fluxSettings{
		job: input.Job, namespace: input.Namespace, subdomain: input.Subdomain,
		image:  fluxSetting(input, fluxImageVariable, fluxImage),
		device: fluxSetting(input, fluxDeviceVariable, fluxDevice),
		policy: fluxSetting(input, fluxPolicyVariable, fluxPolicy),
		hosts:  input.Nodes, tasks: 1, gpus: input.GPUs,
	}
	if node := input.role(trainerv1alpha1.NodeName); node != nil {
		settings.hosts = node.Pods
	}
	switch {
	case input.Processes != nil:
		settings.tasks = *input.Processes
	case input.Policy.Flux != nil && input.Policy.Flux.NumProcPerNode != nil:
		settings.tasks = max(1, *input.Policy.Flux.NumProcPerNode)
	}
	return settings
}

// fluxSetting returns the value of a variable: the job's, else the runtime's, else the usual. A variable with a
// valueFrom is not known here and is ignored.
func fluxSetting(input Input, name, usual string) string {
	value := ""
	for _, variable := range slices.Concat(input.RuntimeEnv, input.Env) {
		if variable.Name == name {
			value = cmp.Or(variable.Value, value)
		}
	}
	return cmp.Or(value, usual)
}

// fluxParts returns the additions to the pods. Upstream mounts the shared memory read-only, and a test of its contract
// requires that.
func fluxParts(input Input, image string) PodParts {
	scripts := input.Job + "-" + fluxScripts
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	install := corev1.VolumeMount{Name: "flux-install", MountPath: fluxRoot}
	config := corev1.VolumeMount{Name: scripts, MountPath: fluxScriptsDir, ReadOnly: true}
	return PodParts{
		Roles: []string{trainerv1alpha1.NodeName},
		Volumes: []corev1.Volume{
			{Name: "spack-install", VolumeSource: empty},
			{Name: install.Name, VolumeSource: empty},
			{Name: scripts, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: scripts}, DefaultMode: new(int32(0o755)),
			}}},
			{Name: "shared-memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				Medium: corev1.StorageMediumMemory,
			}}},
			{Name: fluxCurve, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: input.SecretName(fluxCurve), DefaultMode: new(int32(0o400)),
			}}},
		},
		Mounts: []corev1.VolumeMount{
			install,
			{Name: "spack-install", MountPath: fluxSoftware},
			config,
			{Name: fluxCurve, MountPath: fluxCurveDir, ReadOnly: true},
			{Name: "shared-memory", MountPath: "/dev/shm", ReadOnly: true},
		},
		InitContainers: []corev1.Container{{
			Name: fluxInstaller, Image: image,
			Command:      []string{"/bin/bash", fluxScriptsDir + "/" + fluxInit},
			VolumeMounts: []corev1.VolumeMount{install, config},
		}},
	}
}
