package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RuntimePatch holds one manager's changes of the runtime. Only the fields of these types can be patched; the patch is
// merged strategically, so lists with names merge by name.
type RuntimePatch struct {
	// manager is the writer of this entry, as a domain-prefixed path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +required
	Manager string `json:"manager"`
	// time is the time of the last change of the entry; stamped at admission.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
	// trainingRuntimeSpec is the patch.
	// +optional
	TrainingRuntimeSpec *TrainingRuntimeSpecPatch `json:"trainingRuntimeSpec,omitempty"`
}

// TrainingRuntimeSpecPatch patches a runtime's spec.
type TrainingRuntimeSpecPatch struct {
	// template patches the JobSet template.
	// +optional
	Template *JobSetTemplatePatch `json:"template,omitempty"`
}

// JobSetTemplatePatch patches a JobSet template.
type JobSetTemplatePatch struct {
	// metadata adds labels and annotations to the JobSet.
	// +optional
	Metadata *metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec patches the JobSet's spec.
	// +optional
	Spec *JobSetSpecPatch `json:"spec,omitempty"`
}

// JobSetSpecPatch patches a JobSet's spec.
type JobSetSpecPatch struct {
	// replicatedJobs patches ReplicatedJobs by name.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	// +optional
	ReplicatedJobs []ReplicatedJobPatch `json:"replicatedJobs,omitempty"`
}

// ReplicatedJobPatch patches one ReplicatedJob.
type ReplicatedJobPatch struct {
	// name is the name of the ReplicatedJob.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// template patches its Job template.
	// +optional
	Template *JobTemplatePatch `json:"template,omitempty"`
}

// JobTemplatePatch patches a Job template.
type JobTemplatePatch struct {
	// metadata adds labels and annotations to the Jobs.
	// +optional
	Metadata *metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec patches the Jobs' spec.
	// +optional
	Spec *JobSpecPatch `json:"spec,omitempty"`
}

// JobSpecPatch patches a Job's spec.
type JobSpecPatch struct {
	// template patches the pod template.
	// +optional
	Template *PodTemplatePatch `json:"template,omitempty"`
}

// PodTemplatePatch patches a pod template.
type PodTemplatePatch struct {
	// metadata adds labels and annotations to the pods.
	// +optional
	Metadata *metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec patches the pods' spec.
	// +optional
	Spec *PodSpecPatch `json:"spec,omitempty"`
}

// PodSpecPatch patches a pod's spec.
type PodSpecPatch struct {
	// serviceAccountName replaces the pods' service account.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountName *string `json:"serviceAccountName,omitempty"`
	// volumes are merged into the pods' volumes by name.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// initContainers patches init containers by name.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	InitContainers []ContainerPatch `json:"initContainers,omitempty"`
	// containers patches containers by name.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	Containers []ContainerPatch `json:"containers,omitempty"`
	// imagePullSecrets are merged into the pods' pull secrets by name.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// securityContext is merged into the pods' security context.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`
	// terminationGracePeriodSeconds replaces the pods' grace period.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// nodeSelector is merged into the pods' node selector by key.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// affinity is merged into the pods' affinity.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// tolerations replaces the pods' tolerations.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// schedulingGates are merged into the pods' scheduling gates by name.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	SchedulingGates []corev1.PodSchedulingGate `json:"schedulingGates,omitempty"`
}

// ContainerPatch patches one container.
type ContainerPatch struct {
	// name is the name of the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// env is merged into the container's env by name.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// volumeMounts are merged into the container's mounts by path.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// securityContext is merged into the container's security context.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}
