package resolve

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// The place where earlier versions, and Kubeflow Trainer 2.3 (KEP-2599), store the runtime of a job, and look for it:
// in a ConfigMap beside the job, as YAML under one key.
const (
	copySuffix = "-runtime-snapshot"
	copyKey    = "runtime"
)

// CopyName is the name of the ConfigMap with the copy of a job's runtime.
func CopyName(job *trainerv1alpha1.TrainJob) string { return job.Name + copySuffix }

// Copy returns the ConfigMap that shows users the frozen runtime of their job, and that an earlier version of the
// controller continues with. This version does not read it while frozen state exists.
func Copy(job *trainerv1alpha1.TrainJob, state *statev1alpha1.FrozenTrainJob) (*corev1.ConfigMap, error) {
	content, err := yaml.JSONToYAML(state.Spec.Runtime.Raw)
	if err != nil {
		return nil, fmt.Errorf("printing the runtime of TrainJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: CopyName(job), OwnerReferences: plan.Owners(job)},
		Immutable:  new(true),
		Data:       map[string]string{copyKey: string(content)},
	}, nil
}

// adopt reconstructs the decisions and the runtime of a job that was rendered and has no frozen state: an earlier
// version or another controller rendered it, or the state was lost. The copy of the runtime is used if a controller of
// Lockstep's must have made it. The JobSet shows the decisions; one that waits and has no such copy is another
// controller's, and shows none. Without a JobSet there is nothing to adopt, and ok is false.
//
// Tenants may write ConfigMaps. Every version of the controller makes the copy before the JobSet, and immutable, and
// this one freezes a job before either. A tenant can neither create a JobSet of the job nor delete frozen state; a copy
// that he makes for a job which an earlier version has rendered is younger than the JobSet, and only controllers of
// TrainJobs may write that it belongs to the job (policy trainjobowners.lockstep.dev). Kubeflow Trainer's copies are
// mutable, so they are not adopted.
func (r *Resolver) adopt(
	ctx context.Context,
	job *trainerv1alpha1.TrainJob,
	ref Reference,
) (result Found, ok bool, err error) {
	jobSet := &jobsetv1alpha2.JobSet{}
	err = r.cache.Get(ctx, client.ObjectKeyFromObject(job), jobSet)
	if apierrors.IsNotFound(err) || err == nil && !ownership.Controls(job, plan.TrainJobKind(), jobSet) {
		return Found{}, false, nil
	}
	if err != nil {
		return Found{}, false, fmt.Errorf("getting JobSet %s: %w", client.ObjectKeyFromObject(job), err)
	}
	content, doubt, err := r.copyOf(ctx, job, jobSet)
	if err != nil {
		return Found{}, false, err
	}
	if content != "" {
		if result, err = r.parse([]byte(content), ref); err != nil {
			doubt = err.Error()
		}
	}
	believed := result.Live != nil
	if !believed {
		if result, err = r.Current(ctx, job); err != nil {
			return Found{}, false, err
		}
	}
	if believed || jobSet.Spec.Suspend == nil || !*jobSet.Spec.Suspend {
		decided := plan.DecisionsOf(jobSet)
		result.Decisions = &decided
	}
	result.Adopted, result.Disbelieved = true, doubt
	return result, true, nil
}

// copyOf returns the content of the job's copy of its runtime. It is empty if there is no copy, or one that a
// controller cannot have made; then doubt is the reason.
func (r *Resolver) copyOf(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) (content, doubt string, err error) {
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: job.Namespace, Name: CopyName(job)}
	switch err := r.live.Get(ctx, key, config); {
	case apierrors.IsNotFound(err):
		return "", "", nil
	case err != nil:
		return "", "", fmt.Errorf("getting ConfigMap %s: %w", key, err)
	}
	switch {
	case !ownership.Controls(job, plan.TrainJobKind(), config):
		doubt = "it belongs to another object"
	case config.Immutable == nil || !*config.Immutable:
		doubt = "it can be changed"
	case jobSet.CreationTimestamp.Before(&config.CreationTimestamp):
		doubt = "it is younger than the JobSet"
	case config.Data[copyKey] == "":
		doubt = "it has no key " + copyKey
	default:
		return config.Data[copyKey], "", nil
	}
	return "", doubt, nil
}
