package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// promptly bounds the time from a JobSet's creation until JobSet's controller reports it suspended, for a JobSet that
// was created suspended.
const promptly = 5 * time.Second

// LosesVolumes reports whether volume claims would be deleted with a JobSet whose pods may have written to them, so
// that it is not replaced. Only an explicit Retain retains claims: JobSet's default is to delete them.
func LosesVolumes(jobSet *jobsetv1alpha2.JobSet) bool {
	return jobSet != nil && slices.ContainsFunc(jobSet.Spec.VolumeClaimPolicies, deletesClaims) && !neverRan(jobSet)
}

func deletesClaims(policy jobsetv1alpha2.VolumeClaimPolicy) bool {
	retention := ptr.Deref(policy.RetentionPolicy, jobsetv1alpha2.VolumeRetentionPolicy{})
	deleted := ptr.Deref(retention.WhenDeleted, jobsetv1alpha2.RetentionPolicyDelete)
	return deleted == jobsetv1alpha2.RetentionPolicyDelete
}

// neverRan reports whether a suspended JobSet certainly never had pods. A JobSet has no field for that: the counts of
// its Jobs and the startTime of a Job are reset by a suspension. But its condition Suspended has the instant at which
// it became true, and a start in between makes it false; so a condition that is as old as the JobSet proves that there
// was no start. If JobSet's controller was slow or down at the creation there is no proof, and only a JobSet of the
// first generation is known never to have started.
func neverRan(jobSet *jobsetv1alpha2.JobSet) bool {
	if !ptr.Deref(jobSet.Spec.Suspend, false) {
		return false
	}
	if jobSet.Generation <= 1 {
		return true
	}
	since := meta.FindStatusCondition(jobSet.Status.Conditions, string(jobsetv1alpha2.JobSetSuspended))
	if since == nil || since.Status != metav1.ConditionTrue || jobSet.Status.Restarts > 0 {
		return false
	}
	after := since.LastTransitionTime.Sub(jobSet.CreationTimestamp.Time)
	return after >= 0 && after <= promptly
}

// SameSize reports whether two JobSets have the same pods: as many of each ReplicatedJob.
func SameSize(a, b *jobsetv1alpha2.JobSet) bool {
	return slices.EqualFunc(a.Spec.ReplicatedJobs, b.Spec.ReplicatedJobs, func(a, b jobsetv1alpha2.ReplicatedJob) bool {
		return a.Name == b.Name && max(1, a.Replicas) == max(1, b.Replicas) &&
			ptr.Deref(a.Template.Spec.Parallelism, 1) == ptr.Deref(b.Template.Spec.Parallelism, 1)
	})
}

// Adjusted returns the existing JobSet with the planned values of the fields that JobSet permits to change while it is
// suspended: suspend, its labels and annotations, and the labels, annotations, node selectors, tolerations and gates of
// its pods.
func Adjusted(planned, there *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSet {
	adjusted := planned.DeepCopy()
	adjusted.Spec = *there.Spec.DeepCopy()
	adjusted.Spec.Suspend = planned.Spec.Suspend
	for i := range adjusted.Spec.ReplicatedJobs {
		job := &adjusted.Spec.ReplicatedJobs[i]
		at := slices.IndexFunc(planned.Spec.ReplicatedJobs, func(p jobsetv1alpha2.ReplicatedJob) bool {
			return p.Name == job.Name
		})
		if at < 0 {
			continue
		}
		pods, want := &job.Template.Spec.Template, planned.Spec.ReplicatedJobs[at].Template.Spec.Template.DeepCopy()
		pods.Labels, pods.Annotations = want.Labels, want.Annotations
		pods.Spec.NodeSelector, pods.Spec.Tolerations = want.Spec.NodeSelector, want.Spec.Tolerations
		pods.Spec.SchedulingGates = want.Spec.SchedulingGates
	}
	return adjusted
}
