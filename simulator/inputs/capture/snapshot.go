package capture

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// Format is the version of the file format, the first word of every manifest.
const Format = "lockstep.dev/snapshot/v1"

// State is the outcome of a kind in a snapshot.
type State string

const (
	// Captured means that all objects of the kind are in the file, even if there are none.
	Captured State = "captured"
	// Absent means that the server did not serve the kind.
	Absent State = "absent"
	// Unsaid means that the file has none and does not say whether it was asked for: files of others have no manifest.
	Unsaid State = "unsaid"
)

// Manifest is the first line of a snapshot: its kinds, its instant and its origin.
type Manifest struct {
	Format string `json:"format"`
	// Taken is the time at which the capture began, to the second.
	Taken time.Time `json:"taken"`
	// Server is the API server's version: v1.37.1.
	Server     string `json:"server"`
	Anonymized bool   `json:"anonymized"`
	Kinds      []Kind `json:"kinds"`
}

// Kind is the manifest's entry of one kind of objects.
type Kind struct {
	Resource string `json:"resource"`
	Group    string `json:"group"`
	Version  string `json:"version"`
	// Count is the number of objects in the file.
	Count int   `json:"count"`
	State State `json:"state"`
	// ResourceVersion is that of the list; empty for an absent kind.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// LeftOut is the number of objects that the server has and the file has not: pods that have ended.
	LeftOut int `json:"leftOut,omitempty"`
}

// Snapshot is the state of a cluster as far as placement depends on it. Every list is ordered by namespace and name.
type Snapshot struct {
	Manifest Manifest
	// Warnings name the content of the file that this version does not read; one line each.
	Warnings []string
	// Changes are those of nodes after the state, in order, where that was recorded.
	Changes []Change

	Nodes                   []*corev1.Node
	Namespaces              []*corev1.Namespace
	PriorityClasses         []*schedulingv1.PriorityClass
	Workloads               []*schedulingv1beta1.Workload
	PodGroups               []*schedulingv1beta1.PodGroup
	Pods                    []*corev1.Pod
	PodDisruptionBudgets    []*policyv1.PodDisruptionBudget
	DeviceClasses           []*resourcev1.DeviceClass
	ResourceSlices          []*resourcev1.ResourceSlice
	DeviceTaintRules        []*resourcev1.DeviceTaintRule
	ResourceClaims          []*resourcev1.ResourceClaim
	ResourceClaimTemplates  []*resourcev1.ResourceClaimTemplate
	PersistentVolumeClaims  []*corev1.PersistentVolumeClaim
	PersistentVolumes       []*corev1.PersistentVolume
	StorageClasses          []*storagev1.StorageClass
	CSINodes                []*storagev1.CSINode
	CSIDrivers              []*storagev1.CSIDriver
	CSIStorageCapacities    []*storagev1.CSIStorageCapacity
	VolumeAttachments       []*storagev1.VolumeAttachment
	Services                []*corev1.Service
	ReplicationControllers  []*corev1.ReplicationController
	ReplicaSets             []*appsv1.ReplicaSet
	StatefulSets            []*appsv1.StatefulSet
	TrainJobs               []*trainerv1alpha1.TrainJob
	TrainingRuntimes        []*trainerv1alpha1.TrainingRuntime
	ClusterTrainingRuntimes []*trainerv1alpha1.ClusterTrainingRuntime
}

// Change is a node that was added or removed.
type Change struct {
	// At is the time from the state to the change.
	At time.Duration
	// Name is the node's, Node the object of an added one; nil for a removed one.
	Name string
	Node *corev1.Node
}

// Missing returns the kinds that the snapshot does not mention, as resources, in the order of the file: those that a
// scheduler reads.
func (s *Snapshot) Missing() []string {
	var missing []string
	for _, k := range kinds() {
		said := slices.ContainsFunc(s.Manifest.Kinds, func(n Kind) bool {
			return n.Resource == k.resource.Resource && n.State == Captured
		})
		if k.needed && !said {
			missing = append(missing, k.resource.Resource)
		}
	}
	return missing
}

// line is one line of the file after the manifest.
type line[T any] struct {
	Resource string `json:"resource"`
	Object   T      `json:"object"`
}
