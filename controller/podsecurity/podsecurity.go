// Package podsecurity finds the pods that the Pod Security level of their namespace refuses. The API server reports the
// refusal only to the Job controller, when that creates the pods, and so not to the owner of a TrainJob.
package podsecurity

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// Levels evaluates the levels that namespaces enforce. The zero value refuses nothing.
type Levels struct {
	live   client.Reader
	checks policy.Evaluator
	recent *recent
}

// New returns the levels of the namespaces that live gets, by name. A level is cached for ten seconds by the clock:
// many jobs arrive at once, and requests are limited. The error is one of the library's own checks.
func New(live client.Reader, clock clock.PassiveClock) (Levels, error) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return Levels{}, fmt.Errorf("making the checks of Pod Security: %w", err)
	}
	return Levels{live, checks, &recent{clock: clock, levels: make(map[string]read)}}, nil
}

// Refused returns, by name, a sentence for each ReplicatedJob with pods that the namespace refuses. Only the
// namespace's labels are read: the API server may also have exemptions, and a default level. It returns nil for a
// namespace that cannot be read.
func (l Levels) Refused(ctx context.Context, namespace string, jobSet *jobsetv1alpha2.JobSet) map[string]string {
	if l.live == nil {
		return nil
	}
	level, known := l.recent.find(namespace)
	if !known {
		var of corev1.Namespace
		if err := l.live.Get(ctx, client.ObjectKey{Name: namespace}, &of); err != nil {
			klog.FromContext(ctx).V(2).Info("Read no Pod Security level", "namespace", namespace, "reason", err.Error())
			return nil
		}
		// A label that cannot be read counts as restricted, here and in the API server.
		enforced, _ := api.PolicyToEvaluate(of.Labels, api.Policy{
			Enforce: api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()},
		})
		level = enforced.Enforce
		l.recent.keep(namespace, level)
	}
	return l.refused(level, namespace, jobSet)
}

// refused evaluates the pods of a JobSet at a level.
func (l Levels) refused(level api.LevelVersion, namespace string, jobSet *jobsetv1alpha2.JobSet) map[string]string {
	if level.Level == api.LevelPrivileged {
		return nil
	}
	out := make(map[string]string)
	for i := range jobSet.Spec.ReplicatedJobs {
		job := &jobSet.Spec.ReplicatedJobs[i]
		pod := &job.Template.Spec.Template
		result := policy.AggregateCheckResults(l.checks.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
		if !result.Allowed {
			out[job.Name] = fmt.Sprintf("namespace %s enforces Pod Security %s, which refuses the pods of %s: %s",
				namespace, level.Level, job.Name, result.ForbiddenDetail())
		}
	}
	return out
}
