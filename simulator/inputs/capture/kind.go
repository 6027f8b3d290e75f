package capture

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// object is an API object with its metadata.
type object interface {
	runtime.Object
	metav1.Object
}

// kind is one kind of objects that a snapshot holds.
type kind struct {
	resource schema.GroupVersionResource
	name     string
	// needed is set if a scheduler reads it: a file that does not mention it is no snapshot of a cluster.
	needed bool
	// also are other APIs that may have the objects, looked into in order until there is one; in a snapshot they are of
	// the first.
	also []schema.GroupVersion
	// blank is a new object; add puts one that blank made into its list.
	blank func() object
	add   func(*Snapshot, object)
}

// gvk is the kind as objects name it.
func (k kind) gvk() schema.GroupVersionKind { return k.resource.GroupVersion().WithKind(k.name) }

// String is the resource as kubectl and RBAC name it: resourceslices.resource.k8s.io.
func (k kind) String() string { return k.resource.GroupResource().String() }

// pointer is *T, an API object.
type pointer[T any] interface {
	*T
	object
}

func kindOf[T any, P pointer[T]](
	group schema.GroupVersion, resource, name string, list func(*Snapshot) *[]P,
) kind {
	return kind{
		resource: group.WithResource(resource),
		name:     name,
		needed:   true,
		blank:    func() object { return P(new(T)) },
		add: func(s *Snapshot, o object) {
			if typed, ok := o.(P); ok {
				*list(s) = append(*list(s), typed)
			}
		},
	}
}

// orOf is the kind as one whose objects may be in further APIs.
func (k kind) orOf(also ...schema.GroupVersion) kind {
	k.also = also
	return k
}

// optional returns the kind as one that only people need.
func (k kind) optional() kind {
	k.needed = false
	return k
}

// kinds returns those of a snapshot, in the order of the file. The needed ones are those that kube-scheduler 1.37 has
// informers for, with dynamic resource allocation and all its in-tree plugins, and the tracker of device taints; ours
// has no others. CompositePodGroups are not supported yet. The rest is for explanations: the rendering of a job that
// does not exist yet, and the priority that a name stands for.
func kinds() []kind {
	core, apps, storage := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	resource, scheduling := resourcev1.SchemeGroupVersion, schedulingv1beta1.SchemeGroupVersion
	trainer := trainerv1alpha1.GroupVersion()
	return []kind{
		kindOf(core, "nodes", "Node", func(s *Snapshot) *[]*corev1.Node { return &s.Nodes }),
		kindOf(core, "namespaces", "Namespace", func(s *Snapshot) *[]*corev1.Namespace { return &s.Namespaces }),
		kindOf(schedulingv1.SchemeGroupVersion, "priorityclasses", "PriorityClass",
			func(s *Snapshot) *[]*schedulingv1.PriorityClass { return &s.PriorityClasses }).optional(),
		kindOf(scheduling, "workloads", "Workload",
			func(s *Snapshot) *[]*schedulingv1beta1.Workload { return &s.Workloads }).optional(),
		kindOf(scheduling, "podgroups", "PodGroup",
			func(s *Snapshot) *[]*schedulingv1beta1.PodGroup { return &s.PodGroups }).orOf(gangapi.Resources.Version()),
		kindOf(core, "pods", "Pod", func(s *Snapshot) *[]*corev1.Pod { return &s.Pods }),
		kindOf(policyv1.SchemeGroupVersion, "poddisruptionbudgets", "PodDisruptionBudget",
			func(s *Snapshot) *[]*policyv1.PodDisruptionBudget { return &s.PodDisruptionBudgets }),
		kindOf(resource, "deviceclasses", "DeviceClass",
			func(s *Snapshot) *[]*resourcev1.DeviceClass { return &s.DeviceClasses }),
		kindOf(resource, "resourceslices", "ResourceSlice",
			func(s *Snapshot) *[]*resourcev1.ResourceSlice { return &s.ResourceSlices }),
		kindOf(resource, "devicetaintrules", "DeviceTaintRule",
			func(s *Snapshot) *[]*resourcev1.DeviceTaintRule { return &s.DeviceTaintRules }),
		kindOf(resource, "resourceclaims", "ResourceClaim",
			func(s *Snapshot) *[]*resourcev1.ResourceClaim { return &s.ResourceClaims }),
		kindOf(resource, "resourceclaimtemplates", "ResourceClaimTemplate",
			func(s *Snapshot) *[]*resourcev1.ResourceClaimTemplate { return &s.ResourceClaimTemplates }).optional(),
		kindOf(core, "persistentvolumeclaims", "PersistentVolumeClaim",
			func(s *Snapshot) *[]*corev1.PersistentVolumeClaim { return &s.PersistentVolumeClaims }),
		kindOf(core, "persistentvolumes", "PersistentVolume",
			func(s *Snapshot) *[]*corev1.PersistentVolume { return &s.PersistentVolumes }),
		kindOf(storage, "storageclasses", "StorageClass",
			func(s *Snapshot) *[]*storagev1.StorageClass { return &s.StorageClasses }),
		kindOf(storage, "csinodes", "CSINode", func(s *Snapshot) *[]*storagev1.CSINode { return &s.CSINodes }),
		kindOf(storage, "csidrivers", "CSIDriver", func(s *Snapshot) *[]*storagev1.CSIDriver { return &s.CSIDrivers }),
		kindOf(storage, "csistoragecapacities", "CSIStorageCapacity",
			func(s *Snapshot) *[]*storagev1.CSIStorageCapacity { return &s.CSIStorageCapacities }),
		kindOf(storage, "volumeattachments", "VolumeAttachment",
			func(s *Snapshot) *[]*storagev1.VolumeAttachment { return &s.VolumeAttachments }),
		kindOf(core, "services", "Service", func(s *Snapshot) *[]*corev1.Service { return &s.Services }),
		kindOf(core, "replicationcontrollers", "ReplicationController",
			func(s *Snapshot) *[]*corev1.ReplicationController { return &s.ReplicationControllers }),
		kindOf(apps, "replicasets", "ReplicaSet", func(s *Snapshot) *[]*appsv1.ReplicaSet { return &s.ReplicaSets }),
		kindOf(apps, "statefulsets", "StatefulSet",
			func(s *Snapshot) *[]*appsv1.StatefulSet { return &s.StatefulSets }),
		kindOf(trainer, "trainjobs", trainerv1alpha1.TrainJobKind,
			func(s *Snapshot) *[]*trainerv1alpha1.TrainJob { return &s.TrainJobs }).optional(),
		kindOf(trainer, "trainingruntimes", trainerv1alpha1.TrainingRuntimeKind,
			func(s *Snapshot) *[]*trainerv1alpha1.TrainingRuntime { return &s.TrainingRuntimes }).optional(),
		kindOf(
			trainer,
			"clustertrainingruntimes",
			trainerv1alpha1.ClusterTrainingRuntimeKind,
			func(s *Snapshot) *[]*trainerv1alpha1.ClusterTrainingRuntime { return &s.ClusterTrainingRuntimes },
		).optional(),
	}
}
