package v1alpha1

// Labels on runtimes and on the templates inside them.
const (
	// LabelAncestor on a ReplicatedJob's Job template names the part of a TrainJob that the job runs.
	LabelAncestor = "trainer.kubeflow.org/trainjob-ancestor-step"
	// LabelFramework on a runtime names its framework for clients.
	LabelFramework = "trainer.kubeflow.org/framework"
	// LabelSupport on a runtime set to SupportDeprecated announces its removal.
	LabelSupport = "trainer.kubeflow.org/support"
	// LabelWebhookValidation on a runtime set to "disabled" exempts it from the validating webhook.
	LabelWebhookValidation = "trainer.kubeflow.org/webhook-validation"
)

// Values of LabelAncestor and LabelSupport.
const (
	// AncestorTrainer marks the job that trains.
	AncestorTrainer = "trainer"
	// AncestorDatasetInitializer marks the job that fetches the dataset.
	AncestorDatasetInitializer = "dataset-initializer"
	// AncestorModelInitializer marks the job that fetches the model.
	AncestorModelInitializer = "model-initializer"
	// SupportDeprecated is the value of LabelSupport for runtimes about to be removed.
	SupportDeprecated = "deprecated"
)

// Names that runtimes and the controller agree on.
const (
	// NodeName names the trainer's ReplicatedJob and its main container.
	NodeName = "node"
	// LauncherName names the ReplicatedJob that starts MPI processes.
	LauncherName = "launcher"
	// DatasetInitializerName names the dataset initializer's ReplicatedJob and its main container.
	DatasetInitializerName = "dataset-initializer"
	// ModelInitializerName names the model initializer's ReplicatedJob and its main container.
	ModelInitializerName = "model-initializer"
	// InitializerVolumeName names the volume in which initializers store the fetched data.
	InitializerVolumeName = "initializer"
	// EnvStorageURI is the variable with the URI that an initializer fetches.
	EnvStorageURI = "STORAGE_URI"
)

// Values of a TrainJob's managedBy.
const (
	// DefaultManagedBy is the default, for the controller of TrainJobs that the cluster has: Kubeflow Trainer's or Lockstep's.
	DefaultManagedBy = "trainer.kubeflow.org/trainjob-controller"
	// LockstepManagedBy is Lockstep's controller, also where Kubeflow Trainer runs beside it.
	LockstepManagedBy = "lockstep.dev/trainjob-controller"
)

const (
	// LabelTrainer is the label of a namespace or a runtime that chooses the controller of its new TrainJobs where Lockstep runs beside Kubeflow Trainer.
	LabelTrainer = "lockstep.dev/trainer"
	// TrainerLockstep is the value of LabelTrainer that chooses Lockstep. Any other value leaves the jobs to Kubeflow Trainer.
	TrainerLockstep = "lockstep"
)

// Conditions of a TrainJob, and the reasons that the controller itself gives; it copies other reasons from the JobSet.
const (
	// TrainJobSuspended is the condition of a job that is, or was, suspended.
	TrainJobSuspended = "Suspended"
	// TrainJobComplete is the condition of a job that ended well.
	TrainJobComplete = "Complete"
	// TrainJobFailed is the final condition of a job that failed.
	TrainJobFailed = "Failed"

	// ReasonSuspended is the reason of condition Suspended while the job is suspended.
	ReasonSuspended = "Suspended"
	// ReasonResumed is the reason of condition Suspended after the job was resumed.
	ReasonResumed = "Resumed"
	// ReasonDeadlineExceeded is the reason of condition Failed for a job that ran longer than it was allowed to.
	ReasonDeadlineExceeded = "DeadlineExceeded"
)
