// Package v1alpha1 holds the API that users of Lockstep's controller write: TrainJob, TrainingRuntime and
// ClusterTrainingRuntime of group trainer.kubeflow.org, wire compatible with Kubeflow Trainer 2.3.
//
// The types are our own because upstream's do not compile against Kubernetes 1.37. Every field, limit, default and rule
// of the wire contract is here and nothing else: the manifests in manifests/chart/crds are generated from this package.
//
// +kubebuilder:object:generate=true
// +groupName=trainer.kubeflow.org
package v1alpha1
