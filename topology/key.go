package topology

// The keys of Lockstep's annotations. They are written by users on TrainJobs, runtimes and pod templates and copied by
// the controller to the PodGroup, where the scheduler reads them; docs/annotations.md is their contract.
const (
	// AnnotationRequiredTopology names the level (or node-label key) with one domain that must hold the whole gang.
	AnnotationRequiredTopology = "lockstep.dev/required-topology"
	// AnnotationPreferredTopology names the level with one domain that should hold the gang.
	AnnotationPreferredTopology = "lockstep.dev/preferred-topology"
	// AnnotationSegmentSize is the number of consecutive ranks that must share one domain of the segment level.
	AnnotationSegmentSize = "lockstep.dev/segment-size"
	// AnnotationSegmentTopology names the segment level.
	AnnotationSegmentTopology = "lockstep.dev/segment-topology"
	// AnnotationSegmentEqual set to "true" forbids a short last segment.
	AnnotationSegmentEqual = "lockstep.dev/segment-equal"
	// AnnotationSpreadTopology names the level over which members are spread.
	AnnotationSpreadTopology = "lockstep.dev/spread-topology"
	// AnnotationSpreadMax is the most segments that one domain of the spread level may hold; members without segments.
	AnnotationSpreadMax = "lockstep.dev/spread-max"
	// AnnotationSpares is the number of nodes that the gang leaves unused in each domain of the segment level, else the
	// required level, else the preferred level.
	AnnotationSpares = "lockstep.dev/spares"
	// AnnotationMaxPerNode is the most members of the gang on one node.
	AnnotationMaxPerNode = "lockstep.dev/max-per-node"
	// AnnotationTorusBox is the shape, in nodes along each axis, of the box in one torus (LabelTorus) whose nodes the
	// gang fills, such as 2x4x4.
	AnnotationTorusBox = "lockstep.dev/torus-box"
	// AnnotationCommunication is the communication profile: ring, chain or all-to-all.
	AnnotationCommunication = "lockstep.dev/communication"
	// AnnotationGang switches gang placement "on" or "off" for a TrainJob or a runtime.
	AnnotationGang = "lockstep.dev/gang"
	// AnnotationScheduler selects the gang's scheduler: "lockstep", "native" or a scheduler's name.
	AnnotationScheduler = "lockstep.dev/scheduler"
	// AnnotationOnDisruption is the reaction of a gang that loses a member: "restart" or "replace".
	AnnotationOnDisruption = "lockstep.dev/on-disruption"
	// AnnotationMaxRestarts is the number of times that all ranks of a gang start again after one of them failed.
	AnnotationMaxRestarts = "lockstep.dev/max-restarts"
	// AnnotationMinNodes is the least number of nodes with which an elastic job trains. On a PodGroup it marks an
	// elastic gang.
	AnnotationMinNodes = "lockstep.dev/min-nodes"
	// AnnotationMaxNodes is the greatest number of nodes with which an elastic job trains.
	AnnotationMaxNodes = "lockstep.dev/max-nodes"
	// AnnotationExitCodes is the meaning of the exit codes of ranks, as ParseExitCodes reads it.
	AnnotationExitCodes = "lockstep.dev/exit-codes"
	// AnnotationStartPatience is the time for which a starting gang may make no progress, in the format of
	// ParsePatience.
	AnnotationStartPatience = "lockstep.dev/start-patience"
	// AnnotationSweepParallelism bounds the gangs of a sweep (LabelSweep) that run at a time: an integer of at least 1.
	AnnotationSweepParallelism = "lockstep.dev/sweep-parallelism"
	// AnnotationMNNVL asks for multi-node NVLink: "required", "preferred" or "none".
	AnnotationMNNVL = "lockstep.dev/mnnvl"
	// AnnotationAutoResources set to "true" lets resources be filled in at creation.
	AnnotationAutoResources = "lockstep.dev/auto-resources"
	// AnnotationModel describes a training for which controller/sizing computes the memory.
	AnnotationModel = "lockstep.dev/model"
	// AnnotationChosen is on the JobSet of a job with automatic resources: one sentence about their computation. Its
	// prefix is not that of the other keys because earlier releases refuse unknown keys of that prefix.
	AnnotationChosen = "state.lockstep.dev/auto-resources"
	// AnnotationLateMembers announces members that arrive when the others run, so that places are held for them: a JSON
	// list of pod templates with the fields that scheduling reads (name, the labels that identify the pod, requests,
	// node selector, affinity, tolerations); written by the controller only.
	AnnotationLateMembers = "lockstep.dev/late-members"
	// AnnotationPriorityClass is the PriorityClass of a TrainJob's pods and groups.
	AnnotationPriorityClass = "lockstep.dev/priority-class"
	// AnnotationOnLoss is the reaction of a gang's owner to the loss of a member. The scheduler writes it on PodGroups
	// of gangs that other controllers mark, and Lockstep's controller OnLossEnded on those of TrainJobs that have
	// ended.
	AnnotationOnLoss = "lockstep.dev/on-loss"
	// OnLossGone is its value for an owner that recreates no member.
	OnLossGone = "gone"
	// OnLossEnded is its value for a job that has ended: what still runs of it is on its way out.
	OnLossEnded = "ended"
	// AnnotationQueuedAt is the instant (RFC 3339) from which the gang waits; written by the controller only.
	AnnotationQueuedAt = "lockstep.dev/queued-at"
	// AnnotationJobQueuedAt is the same instant on the TrainJob, where admission writes it. Its prefix is not that of
	// the other keys because earlier releases refuse TrainJobs with a key of that prefix that they do not know: no
	// resumed job would start after a rollback.
	AnnotationJobQueuedAt = "state.lockstep.dev/queued-at"
	// AnnotationExpectedEnd is the instant (RFC 3339) at which the job is expected to end, by its deadline or by its
	// own report; written by the controller only.
	AnnotationExpectedEnd = "lockstep.dev/expected-end"
	// AnnotationLastCheckpoint is the instant (RFC 3339) at which the job last saved its work: a preemption would lose
	// later work; written by the controller only.
	AnnotationLastCheckpoint = "lockstep.dev/last-checkpoint"
	// AnnotationFinished is the number of required members that have succeeded and need not be recreated, of the number
	// required, such as "3 of 4"; written by the scheduler on the PodGroup when others wait.
	AnnotationFinished = "lockstep.dev/finished-members"
	// AnnotationPreemptible set to "false" on a PriorityClass by an administrator exempts its pods from preemption.
	AnnotationPreemptible = "lockstep.dev/preemptible"
	// AnnotationReservation set to NoReservation on a PodGroup revokes the gang's reservation, and grants it no other.
	AnnotationReservation = "lockstep.dev/reservation"
	// AnnotationCheckpointDeadline is the instant (RFC 3339) until which a pod that is preempted has time to save its
	// work; written by the scheduler on the pod, before it is ended.
	AnnotationCheckpointDeadline = "lockstep.dev/checkpoint-deadline"
)

// LabelSweep names the set of trials to which a TrainJob, and its PodGroup, belongs, within its namespace.
const LabelSweep = "lockstep.dev/sweep"

// NoReservation is the value of AnnotationReservation.
const NoReservation = "none"

// KeyMaintenance is the key of an annotation, or of a taint, with which an administrator closes a node, or the whole
// domain around it of the level that is its value, to new pods.
const KeyMaintenance = "lockstep.dev/maintenance"

// KeyAvoid is the key of an annotation, or of a taint, with which an administrator closes a node to new pods, and has
// the gangs that run there leave it after their next checkpoint.
const KeyAvoid = "lockstep.dev/avoid"

// KeyUnhealthy is the key of the taint that the scheduler assumes on a node because of one of its conditions, or
// because of pod failures there: pods that tolerate it may be placed there all the same. No node carries it.
const KeyUnhealthy = "lockstep.dev/unhealthy"

// LabelClique is the node label that NVIDIA's GPU discovery sets to <ClusterUUID>.<CliqueID>: the nodes that share one
// NVLink partition.
const LabelClique = "nvidia.com/gpu.clique"

// labelHostname is the node label whose domains are single nodes.
const labelHostname = "kubernetes.io/hostname"
