package framework

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// port is the port on which the first training process listens for the others.
const port int32 = 29500

// Input is the input of a framework about a job.
type Input struct {
	// Job is the TrainJob's name, which is also the JobSet's and the headless service's. Namespace is that of all its
	// objects.
	Job, Namespace string
	// Runtime is the runtime's name.
	Runtime string
	// SecretSuffix ends the names of the job's Secrets, randomly generated, so that they cannot be guessed; empty for
	// fixed names.
	SecretSuffix string
	// Subdomain is that of the pods' DNS names: pod.subdomain.
	Subdomain string
	// Policy is the runtime's policy.
	Policy trainerv1alpha1.MLPolicySource
	// Nodes is the number of training nodes, NodesGiven whether the job itself sets it. An elastic job has this many at
	// most.
	Nodes      int32
	NodesGiven bool
	// Slices is the number of Jobs over which the nodes are divided evenly, at least 1.
	Slices int32
	// TPU is set if the nodes have TPUs.
	TPU bool
	// LeastNodes counts the nodes without which an elastic job does not train; 0 for a job that needs all.
	LeastNodes int32
	// MaxRestarts limits the restarts of the processes of an elastic job.
	MaxRestarts int32
	// Processes is the number of processes on each node; nil if the job does not set it.
	Processes *int32
	// GPUs is the number of GPUs that each node's container asks for.
	GPUs int64
	// Claimed is set if each node's container has devices by claims. Only claims and device classes, which other users
	// own and may change, show how many of them are GPUs.
	Claimed bool
	// CPUs is the number of CPUs that each node's container asks for, rounded up.
	CPUs int64
	// WithoutToken is set if the trainer's pods refuse the token of their ServiceAccount.
	WithoutToken bool
	// Env is the TrainJob's own env, Args are its arguments; to be read only.
	Env  []corev1.EnvVar
	Args []string
	// JobCommand is the TrainJob's own command, nil if it has none; to be read only.
	JobCommand []string
	// Command, RuntimeArgs and RuntimeEnv are those of the runtime's main container, patches included; to be read only.
	Command, RuntimeArgs []string
	RuntimeEnv           []corev1.EnvVar
	// Roles are the ReplicatedJobs of the runtime, in its order.
	Roles []Role
}

// Role is one ReplicatedJob of a runtime.
type Role struct {
	// Name is the ReplicatedJob's name.
	Name string
	// Trains is set if it has the trainer's label.
	Trains bool
	// Containers are the names of its containers, init containers last.
	Containers []string
	// Replicas is the number of its Jobs, Pods that of the pods of each. For a Sizer, Pods is the runtime's number.
	Replicas, Pods int32
}

// uncounted reports whether the number of processes of a node is unknown: it may have GPUs, but by claims.
func (w Input) uncounted() bool { return w.Claimed && w.GPUs == 0 && w.Processes == nil }

// refuseUncounted refuses nodes with processes that have to be counted and cannot be.
func (w Input) refuseUncounted(spec *field.Path) field.ErrorList {
	if !w.uncounted() {
		return nil
	}
	return field.ErrorList{field.Required(spec.Child("trainer", "numProcPerNode"),
		"the nodes have devices by claims, which do not say how many processes there are to be")}
}

// role is the role of that name, nil if there is none.
func (w Input) role(name string) *Role {
	for i := range w.Roles {
		if w.Roles[i].Name == name {
			return &w.Roles[i]
		}
	}
	return nil
}

// Leader is the DNS name of the first training process. Upstream ignores a custom subdomain here, and so do we: the
// name is part of the contract with users' code.
func (w Input) Leader() string {
	return w.Job + "-" + trainerv1alpha1.NodeName + "-0-0." + w.Job
}

// SecretName returns the name of the job's Secret with that suffix.
func (w Input) SecretName(suffix string) string { return SecretName(w.Job, suffix, w.SecretSuffix) }

// SecretName returns the name of a job's Secret: the job, the suffix for its content, and the random end, if there is
// one.
func SecretName(job, suffix, end string) string {
	if end == "" {
		return job + "-" + suffix
	}
	return job + "-" + suffix + "-" + end
}

// Contribution holds a framework's additions to a job.
type Contribution struct {
	// Env is added to the trainer's container.
	Env []corev1.EnvVar
	// BeforeUser puts Env before the user's variables instead of after them. A user's variable of the same name wins
	// either way; only the order differs, and a JobSet's order may not change once it exists.
	BeforeUser bool
	// Command replaces the command of the trainer's container, nil for the job's or the runtime's own.
	Command []string
	// TakesArgs is set if Command includes the arguments, so that the container needs none.
	TakesArgs bool
	// Warnings name, for the owner, possible failures and their remedy.
	Warnings []string
	// Wraps run something before the final commands of containers.
	Wraps []Wrap
	// Ports are opened on the trainer's container.
	Ports []int32
	// Injections are for containers other than the trainer's.
	Injections []Injection
	// Parts are added to pods.
	Parts []PodParts
	// Files are ConfigMaps that belong to the job, Secrets are made once for it.
	Files   []Files
	Secrets []Secret
	// Companion is a ReplicatedJob beside the trainer's that runs the job's image too; CompanionTrains, that it gets
	// the job's variables and resources as well.
	Companion       string
	CompanionTrains bool
}

// PodParts are the additions to the pods of some roles, in this order, after their own parts. Of two volumes with one
// name, or two mounts at one place, the new one stays.
type PodParts struct {
	Roles   []string
	Volumes []corev1.Volume
	// Mounts are those of the main containers.
	Mounts []corev1.VolumeMount
	// InitContainers have names that the pods do not use; Validate checks that.
	InitContainers []corev1.Container
}

// SecretKind is the kind of a Secret's content.
type SecretKind string

const (
	// SSHKeys is a pair of SSH keys: the private one where Kubernetes has it, the public one under SSHPublicKey.
	SSHKeys SecretKind = "keys"
	// CURVECertificate is a pair of CurveZMQ's keys in one file, under CURVEFile.
	CURVECertificate SecretKind = "curve"
)

// The keys in Secrets for which Kubernetes has no name.
const (
	SSHPublicKey = "ssh-publickey"
	CURVEFile    = "curve.cert"
)

// Secret is a Secret with the name that Input.SecretName returns. Its content is randomly generated, so the planner's
// callers make it.
type Secret struct {
	Suffix string
	Kind   SecretKind
}

// Files is a ConfigMap, named by the job and the suffix.
type Files struct {
	Suffix string
	Data   map[string]string
}

// Injection is env for one container of one ReplicatedJob. The job's own variables follow it.
type Injection struct {
	Role, Container string
	Env             []corev1.EnvVar
}

// text is a variable with a literal value.
func text(name, value string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, Value: value}
}

// number is a variable with a number for a value.
func number(name string, value int64) corev1.EnvVar {
	return text(name, strconv.FormatInt(value, 10))
}

// rank returns a variable with the pod's completion index, which is its rank.
func rank(name string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']",
	}}}
}
