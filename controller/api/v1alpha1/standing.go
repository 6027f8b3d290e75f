package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainJobPhase sums up the state of a TrainJob in one word.
type TrainJobPhase string

const (
	// PhaseSuspended is a job that its owner, or Kueue, has suspended.
	PhaseSuspended TrainJobPhase = "Suspended"
	// PhaseBlocked is a job that is to run, and whose objects cannot be made.
	PhaseBlocked TrainJobPhase = "Blocked"
	// PhaseWaiting is a job that waits for nodes, or for pods that nothing creates.
	PhaseWaiting TrainJobPhase = "Waiting"
	// PhaseStarting is a job whose ranks are not all ready yet: an initializer runs, or its gangs have their nodes, or it has no gang.
	PhaseStarting TrainJobPhase = "Starting"
	// PhaseRunning is a job all of whose ranks are ready.
	PhaseRunning TrainJobPhase = "Running"
	// PhaseComplete is a job that ended well.
	PhaseComplete TrainJobPhase = "Complete"
	// PhaseFailed is a job that ended badly.
	PhaseFailed TrainJobPhase = "Failed"
)

// The conditions in status.scheduling of a TrainJob.
const (
	// SchedulingQueued is True while the job waits for nodes.
	SchedulingQueued = "Queued"
	// SchedulingPlaced is True while the job has its nodes.
	SchedulingPlaced = "Placed"
	// SchedulingPreempted is True from an eviction until the job has nodes again. The message names the cause.
	SchedulingPreempted = "Preempted"
	// SchedulingMoved is True for a job that has other nodes than before its last interruption.
	SchedulingMoved = "Moved"
	// SchedulingNotResumed is True for a job that is not suspended, and whose JobSet still is.
	SchedulingNotResumed = "NotResumed"
)

// SchedulingStatus describes the nodes of a TrainJob, or the reason why it waits. Lockstep's controller writes it;
// Kubeflow Trainer does not know it.
type SchedulingStatus struct {
	// phase sums up the state of the job: Suspended, Blocked, Waiting, Starting, Running, Complete or Failed.
	// +kubebuilder:validation:Enum=Suspended;Blocked;Waiting;Starting;Running;Complete;Failed
	// +required
	Phase TrainJobPhase `json:"phase"`
	// reason is the cause of the phase, in one sentence.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`
	// ranks is the number of pods that train.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Ranks int32 `json:"ranks,omitempty"`
	// elastic is the number of nodes of an elastic job, with its bounds. It is absent for a job of one size.
	// +optional
	Elastic *ElasticStatus `json:"elastic,omitempty"`
	// waitingSince is since when the job waits for nodes.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`
	// placement describes the nodes that the job has.
	// +optional
	Placement *Placement `json:"placement,omitempty"`
	// lastDomain is the domain that held the job before its last interruption. It is dropped once the job has nodes again.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	LastDomain string `json:"lastDomain,omitempty"`
	// queue is the place of the job in the scheduler's queue.
	// +optional
	Queue *QueueStatus `json:"queue,omitempty"`
	// firstEstimate is the first end that the job's trainer reported in the present run.
	// +optional
	FirstEstimate *FirstEstimate `json:"firstEstimate,omitempty"`
	// lastFailure is the first rank that failed in the last run that failed. It stays when the ranks start again.
	// +optional
	LastFailure *RankFailure `json:"lastFailure,omitempty"`
	// restarts counts the restarts of all ranks after a failure. Evictions are not counted.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
	// conditions are Queued, Placed, Preempted, Moved and NotResumed. A condition that never was True is not there.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ElasticStatus is the number of nodes of an elastic job, with its bounds.
type ElasticStatus struct {
	// minNodes is the number of nodes without which the job does not train.
	// +kubebuilder:validation:Minimum=1
	// +required
	MinNodes int32 `json:"minNodes,omitempty"`
	// maxNodes is the number of nodes that the job takes when there is room.
	// +kubebuilder:validation:Minimum=1
	// +required
	MaxNodes int32 `json:"maxNodes,omitempty"`
	// readyNodes is the number of nodes whose ranks are ready.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ReadyNodes int32 `json:"readyNodes,omitempty"`
}

// RankFailure describes a rank that failed by itself, or that had last words when its job ran out of time. It was not evicted.
type RankFailure struct {
	// rank is the completion index of the pod. It is absent for a pod without one.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Rank *int32 `json:"rank,omitempty"`
	// pod is the name of the pod.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pod string `json:"pod,omitempty"`
	// node is the name of the node on which the pod ran.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Node string `json:"node,omitempty"`
	// container is the name of the container that failed. It is absent if the node refused the pod.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Container string `json:"container,omitempty"`
	// exitCode is the exit code of the container.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// reason is a word such as Error, OOMKilled or OutOfcpu.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is the end of the container's log, or its termination message.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// time is the time at which the container ended.
	// +required
	Time metav1.Time `json:"time,omitzero"`
}

// FirstEstimate is the first end that the trainer of a job reported. The ratio of actual to first reported run times
// corrects the expected ends of the next jobs of the same runtime in the same namespace.
type FirstEstimate struct {
	// reportedAt is the time of the report.
	// +required
	ReportedAt metav1.Time `json:"reportedAt,omitzero"`
	// end is the time at which the job was to end.
	// +required
	End metav1.Time `json:"end,omitzero"`
}

// Placement describes the nodes of a TrainJob's gangs.
type Placement struct {
	// domain is the smallest domain that holds a gang, such as "su-1/leaf-3"; those of several gangs are joined by commas.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Domain string `json:"domain,omitempty"`
	// nodes is the number of nodes that the gangs have.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`
	// quality is the least cost of any place, divided by the cost of this one: from "0.01" to "1.00", which cannot be better; of
	// several gangs the worst.
	// +kubebuilder:validation:MaxLength=8
	// +optional
	Quality string `json:"quality,omitempty"`
	// since is the time at which the last gang got its nodes.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// QueueStatus is the place of a TrainJob's gang in the scheduler's queue; of several gangs, of the last one.
type QueueStatus struct {
	// position is 1 for the first that waits. It is renewed when it has halved or doubled.
	// +optional
	Position int32 `json:"position,omitempty"`
	// expectedStart is the time at which the reserved nodes should be free.
	// +optional
	ExpectedStart *metav1.Time `json:"expectedStart,omitempty"`
	// reservation is the domain in which nodes are reserved for the gang.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reservation string `json:"reservation,omitempty"`
}
