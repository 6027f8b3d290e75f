package resolve

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// Lockstep up to its first wave, and Kubeflow Trainer 2.3 (KEP-2599), keep a job's runtime in a ConfigMap of the job's
// namespace, as YAML under one key.
const (
	earlierSuffix = "-runtime-snapshot"
	earlierKey    = "runtime"
)

// EarlierCopyName is the name of the ConfigMap in which earlier controllers kept the runtime of a job.
func EarlierCopyName(job *trainerv1alpha1.TrainJob) string { return job.Name + earlierSuffix }

// adopt finds what an earlier controller decided about a job that has no frozen state: its JobSet shows the decisions, and its
// copy of the runtime is taken over if it can be believed. Without a JobSet there is nothing to adopt.
//
// Tenants may write ConfigMaps, so a copy counts only where an earlier controller must have made it. It writes the copy
// before the JobSet, and this one freezes a job before it makes a JobSet; so a job with a JobSet and without frozen state was
// rendered by an earlier controller, and its copy is not younger than the JobSet, and immutable. That the copy belongs to the
// job, only TrainJob controllers may say (policy trainjobowners.lockstep.dev).
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
	content, doubt, err := r.earlierCopy(ctx, job, jobSet)
	if err != nil {
		return Found{}, false, err
	}
	if content != "" {
		if result, err = r.parse([]byte(content), ref); err != nil {
			doubt = err.Error()
		}
	}
	if result.Live == nil {
		if result, err = r.Current(ctx, job); err != nil {
			return Found{}, false, err
		}
	}
	decided := plan.DecisionsOf(jobSet)
	result.Decisions, result.Disbelieved = &decided, doubt
	return result, true, nil
}

// earlierCopy is the text of the runtime that an earlier controller kept for a job with that JobSet. It is empty if there is
// none, and if there is one that an earlier controller cannot have made; then doubt says why.
func (r *Resolver) earlierCopy(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) (content, doubt string, err error) {
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: job.Namespace, Name: EarlierCopyName(job)}
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
	case config.Data[earlierKey] == "":
		doubt = "it has no key " + earlierKey
	default:
		return config.Data[earlierKey], "", nil
	}
	return "", doubt, nil
}
