package trainjob_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// grouped returns a runtime with its nodes in one group, which shares a claim, and its helpers in another.
func grouped() *trainerv1alpha1.ClusterTrainingRuntime {
	rt := torch()
	jobs := rt.Spec.Template.Spec.ReplicatedJobs
	helper := jobs[0].DeepCopy()
	helper.Name, helper.Template.Labels = "helper", nil
	pod := &jobs[0].Template.Spec.Template.Spec
	pod.ResourceClaims = []corev1.PodResourceClaim{{Name: "channel", ResourceClaimTemplateName: new("domain")}}
	rt.Spec.Template.Spec.ReplicatedJobs = append(jobs, *helper)
	rt.Spec.Scheduling = &trainerv1alpha1.Scheduling{ReplicatedJobs: []trainerv1alpha1.ReplicatedJobsScheduling{
		{TargetReplicatedJobs: []string{"node"}, GroupScheduling: trainerv1alpha1.GroupScheduling{
			ResourceClaims: []schedulingv1beta1.PodGroupResourceClaim{
				{Name: "channel", ResourceClaimTemplateName: new("domain")},
			},
		}},
		{TargetReplicatedJobs: []string{"helper"}},
	}}
	return rt
}

func sharing() plan.Options { return plan.Options{KeepsClaims: true} }

// groups are the PodGroups that exist, by name.
func (w *fixture) groups() map[string]schedulingv1beta1.PodGroup {
	w.t.Helper()
	var list schedulingv1beta1.PodGroupList
	if err := w.Client.List(w.t.Context(), &list, client.InNamespace(namespace)); err != nil {
		w.t.Fatal(err)
	}
	byName := map[string]schedulingv1beta1.PodGroup{}
	for _, group := range list.Items {
		byName[group.Name] = group
	}
	return byName
}

func (w *fixture) wantWrites(when string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.writes); diff != "" {
		w.t.Errorf("writes %s (-want +got):\n%s", when, diff)
	}
}

// theirs is a foreign group that happens to have the name of a job's.
func theirs() *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train"}}
}

func TestPodGroups_SeveralInOneJob(t *testing.T) {
	w := newFixture(t, sharing(), grouped(), trainJob(), theirs())
	w.settle()
	w.wantWrites(
		"at the start",
		"create FrozenTrainJob", "create ConfigMap train-runtime-snapshot",
		"apply Workload",
		"apply PodGroup train-node",
		"apply PodGroup train-helper",
		"apply JobSet",
	)
	w.change(suspend(true))
	w.settle()
	w.wantWrites(
		"on suspension",
		"patch JobSet",
		"patch TrainJob status",
		"delete PodGroup train-helper",
		"delete PodGroup train-node",
		"delete Workload",
	)
	w.change(suspend(false))
	w.settle()
	w.wantWrites("on resumption", "apply Workload", "apply PodGroup train-node", "apply PodGroup train-helper",
		"apply JobSet", "patch TrainJob status")

	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = []metav1.Condition{
			{
				Type:               "Completed",
				Status:             "True",
				Reason:             "AllJobsCompleted",
				LastTransitionTime: metav1.NewTime(created()),
			},
		}
	})
	if got := w.settle().RequeueAfter; got != 45*time.Second {
		t.Errorf("comes back after %v, want 45s", got)
	}
	w.wantWrites(
		"at the end",
		"patch TrainJob status",
		"patch PodGroup",
		"patch PodGroup",
		"delete PodGroup train-node",
	)
	if got := w.groups()["train-helper"].Annotations[topology.AnnotationOnLoss]; got != topology.OnLossEnded {
		t.Errorf(
			"the group of the ended job has %s %q: places of its members are reserved",
			topology.AnnotationOnLoss,
			got,
		)
	}
	w.clock.SetTime(created().Add(45 * time.Second))
	w.settle()
	w.wantWrites(
		"45 s after the end",
		"delete PodGroup train-helper",
		"delete Workload",
		"delete ConfigMap train-runtime-snapshot", "delete FrozenTrainJob",
	)
	if _, there := w.groups()["train"]; !there {
		t.Error("somebody else's group of the job's name was deleted")
	}
}

// A claim's devices are allocated for as long as its group exists. A gang that starts again may have lost one of them,
// so it gets a new group, after its pods are deleted; a group without claims stays.
func TestPodGroups_RestartRenewsThoseWithClaims(t *testing.T) {
	w := newFixture(t, sharing(), grouped(), trainJob(suspend(false)))
	w.start()
	node := w.groups()["train-node"]
	node.Finalizers = []string{"scheduling.k8s.io/podgroup-protection"} // until its pods are deleted
	if err := w.Client.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	w.say(func(status *jobsetv1alpha2.JobSetStatus) { status.Restarts = 1 })
	if got := w.settle().RequeueAfter; got == 0 {
		t.Error("it does not come back")
	}
	w.wantWrites("on the restart", "patch JobSet", "delete PodGroup train-node")
	w.settle()
	w.wantWrites("when the JobSet has stopped", "patch TrainJob status")
	w.settle()
	w.wantWrites("while pods are left")

	node = w.groups()["train-node"]
	node.Finalizers = nil
	if err := w.Client.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(created().Add(time.Hour))
	w.settle()
	w.wantWrites("after the pods have gone", "apply PodGroup train-node", "apply JobSet")
	if got := w.groups()["train-node"].Annotations[topology.AnnotationQueuedAt]; got != "2026-11-21T10:00:00Z" {
		t.Errorf("queued-at = %s, want the job's creation: who was preempted does not queue up again", got)
	}
	if *w.jobSet().Spec.Suspend {
		t.Error("the JobSet is still suspended")
	}
	w.settle()
	w.wantWrites("when the JobSet runs again", "patch TrainJob status")
	w.settle()
	w.wantWrites("once all is done")
	if conditions := w.job().Status.Conditions; len(conditions) > 0 {
		t.Errorf("conditions %v: nobody suspended the job", conditions)
	}
}

func TestPodGroups_RestartRenewsNothing(t *testing.T) {
	for name, change := range map[string]func(*trainerv1alpha1.TrainingRuntimeSpec, *jobsetv1alpha2.JobSetStatus){
		"without claims": func(spec *trainerv1alpha1.TrainingRuntimeSpec, _ *jobsetv1alpha2.JobSetStatus) {
			spec.Scheduling.ReplicatedJobs[0].ResourceClaims = nil
		},
		"in place": func(spec *trainerv1alpha1.TrainingRuntimeSpec, _ *jobsetv1alpha2.JobSetStatus) {
			spec.Template.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{RestartStrategy: jobsetv1alpha2.InPlaceRestart}
		},
		"over": func(_ *trainerv1alpha1.TrainingRuntimeSpec, status *jobsetv1alpha2.JobSetStatus) {
			status.TerminalState = "Failed"
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt, status := grouped(), jobsetv1alpha2.JobSetStatus{Restarts: 1}
			change(&rt.Spec, &status)
			w := newFixture(t, sharing(), rt, trainJob())
			w.start()
			w.say(func(now *jobsetv1alpha2.JobSetStatus) { *now = status })
			w.settle()
			w.wantWrites("on the restart")
		})
	}
}
