package admission_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// keptJobSet returns a suspended JobSet of two nodes that ran, with volume claims that would be deleted with it.
func keptJobSet(t *testing.T, edits ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	t.Helper()
	planned, err := plan.New(trainJob(suspended, nodes(2)), there(t).found.Runtime, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	jobSet := planned.JobSet
	jobSet.Generation = 3
	jobSet.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{}}
	for _, edit := range edits {
		edit(jobSet)
	}
	return jobSet
}

// pods patches the spec of the pods of a ReplicatedJob.
func pods(manager string, spec trainerv1alpha1.PodSpecPatch) change {
	return func(job *trainerv1alpha1.TrainJob) {
		patchedBy(manager, "node")(job)
		last := &job.Spec.RuntimePatches[len(job.Spec.RuntimePatches)-1]
		last.TrainingRuntimeSpec.Template.Spec.ReplicatedJobs[0].Template = &trainerv1alpha1.JobTemplatePatch{
			Spec: &trainerv1alpha1.JobSpecPatch{Template: &trainerv1alpha1.PodTemplatePatch{Spec: &spec}},
		}
	}
}

// A change that the JobSet of a job does not permit, and for which it is not replaced, is refused with its field
// instead of blocking the job.
func TestUpdate_OfAJobWhoseJobSetIsKept(t *testing.T) {
	const at = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec."
	const reason = ": Forbidden: cannot be modified: the job has run, its JobSet would have to be created again, and its volume claims would be " +
		"deleted with it; create another TrainJob"
	account := pods("a.io/b", trainerv1alpha1.PodSpecPatch{ServiceAccountName: new("other")})
	retains := func(jobSet *jobsetv1alpha2.JobSet) {
		jobSet.Spec.VolumeClaimPolicies[0].RetentionPolicy = &jobsetv1alpha2.VolumeRetentionPolicy{
			WhenDeleted: new(jobsetv1alpha2.RetentionPolicyRetain),
		}
	}
	for name, c := range map[string]struct {
		jobSet    *jobsetv1alpha2.JobSet
		old, next []change
		want      string
	}{
		"nodes":               {next: []change{nodes(4)}, want: "spec.trainer.numNodes" + reason},
		"nodes of the JobSet": {old: []change{nodes(4)}, next: []change{nodes(2)}},
		"nodes of a retained": {jobSet: keptJobSet(t, retains), next: []change{nodes(4)}},
		"resources": {
			next: []change{func(job *trainerv1alpha1.TrainJob) {
				job.Spec.Trainer.ResourcesPerNode = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}
			}},
			want: "spec.trainer.resourcesPerNode" + reason,
		},
		"account":      {next: []change{account}, want: at + "serviceAccountName" + reason},
		"account back": {old: []change{account}, want: at + "serviceAccountName" + reason},
		"account kept": {old: []change{account}, next: []change{account, labeled}},
		"affinity": {
			next: []change{pods("a.io/b", trainerv1alpha1.PodSpecPatch{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}})},
			want: at + "affinity" + reason,
		},
		"volumes": {
			next: []change{pods("a.io/b", trainerv1alpha1.PodSpecPatch{Volumes: []corev1.Volume{{Name: "more"}}})},
			want: at + "volumes" + reason,
		},
		"an admission by Kueue": {
			next: []change{running, pods("kueue.x-k8s.io/manager", trainerv1alpha1.PodSpecPatch{
				NodeSelector: map[string]string{"pool": "a"}, Tolerations: []corev1.Toleration{{Key: "a"}},
				SchedulingGates: []corev1.PodSchedulingGate{{Name: "a"}},
			})},
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			jobSet := c.jobSet
			if jobSet == nil {
				jobSet = keptJobSet(t)
			}
			old := trainJob(append([]change{suspended, nodes(2)}, c.old...)...)
			next := trainJob(append([]change{suspended, nodes(2)}, c.next...)...)
			got, err := newValidator(t, there(t), jobSet).Update(t.Context(), old, next)
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, c.want, "")
		})
	}
}
