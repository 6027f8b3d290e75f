package doctor

import (
	"github.com/lockstep-project/lockstep/manifests/probe"
)

// Facts are a cluster's answers.
type Facts struct {
	// Version is the API server's release, such as v1.37.2.
	Version string
	// Offer is its offer for gangs. Unserved says that it serves PodGroups of neither API, Untried that the caller may
	// not try.
	Offer             probe.Offer
	Unserved, Untried bool
	// JobSet, Kueue and Trainer are the projects beside Lockstep, Lockstep itself.
	JobSet, Kueue, Trainer, Lockstep Project
	// TrainerCRDs names the owner of these CRDs of trainer.kubeflow.org: empty for none, "kubeflow", or the sum of
	// Lockstep's schema.
	TrainerCRDs string
	// Nodes is the number of nodes, Levels are the names of those that their labels have, outermost first.
	Nodes  int
	Levels []string
	// Accelerators are counted by the name of the extended resource, Drivers are those of ResourceSlices, in order.
	Accelerators map[string]int64
	Drivers      []string
	// Denied are the rights to install that the caller lacks, as verb and resource.
	Denied []string
	// Webhook is the result of a TrainJob that cannot run, created as a dry run where lockstep-controller is installed.
	Webhook Webhook
}

// Webhook is an answer of the API server's that asks webhooks.
type Webhook struct {
	// Tried is set if the dry run was made, Refused if a webhook of Lockstep's refused the job, as it must.
	Tried, Refused bool
	// Error is another refusal: the API server's own, such as of a webhook that does not answer, or of a caller without
	// the right.
	Error string
}

// Project is a controller that may be in a cluster.
type Project struct {
	// Served is set if the API server serves its kinds.
	Served bool
	// Deployments are NAMESPACE/NAME of its Deployments, with the version of the image and the number of ready pods.
	Deployments []Deployment
}

// Deployment is one of a project's.
type Deployment struct {
	Namespace, Name, Version string
	Ready, Wanted            int32
}

// String is the deployment in a few words.
func (d Deployment) String() string {
	text := d.Namespace + "/" + d.Name
	if d.Version != "" {
		text += " " + d.Version
	}
	return text
}
