package trainjob_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// wantsGang has a job ask for a gang itself.
func wantsGang(job *trainerv1alpha1.TrainJob) {
	job.Annotations = map[string]string{topology.AnnotationGang: "on"}
}

// upstreams returns Kubeflow Trainer's JobSet for the fixture's job: without groups.
func upstreams(t *testing.T, edits ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	t.Helper()
	planned, err := plan.New(
		trainJob(),
		plan.Runtime{Kind: "ClusterTrainingRuntime", Name: "torch", Spec: torchSpec()},
		plan.Options{},
	)
	if err != nil {
		t.Fatal(err)
	}
	jobSet := planned.JobSet
	jobSet.UID, jobSet.CreationTimestamp = "theirs", metav1.NewTime(created())
	for _, edit := range edits {
		edit(jobSet)
	}
	return jobSet
}

func waits(jobSet *jobsetv1alpha2.JobSet) { jobSet.Spec.Suspend = new(true) }

func (w *fixture) workload() *schedulingv1beta1.Workload {
	w.t.Helper()
	var workload schedulingv1beta1.Workload
	if !w.get(&workload) {
		return nil
	}
	return &workload
}

// members returns the number of the job's ReplicatedJobs with pods in a group.
func (w *fixture) members() int {
	w.t.Helper()
	count := 0
	for _, replicated := range w.jobSet().Spec.ReplicatedJobs {
		if replicated.Template.Spec.Template.Spec.SchedulingGroup != nil {
			count++
		}
	}
	return count
}

// A running job of another controller retains its JobSet, and gets no group that none of its pods is in.
func TestTakeover_RunningJobGetsNoPhantomGroup(t *testing.T) {
	grouping := torch()
	grouping.Annotations = map[string]string{topology.AnnotationGang: "on"}
	for name, c := range map[string]struct {
		options plan.Options
		runtime *trainerv1alpha1.ClusterTrainingRuntime
		job     func(*trainerv1alpha1.TrainJob)
	}{
		"gangs are the default":   {gang(), torch(), suspend(false)},
		"the job wants a gang":    {plan.Options{}, torch(), wantsGang},
		"its runtime wants gangs": {plan.Options{}, grouping, suspend(false)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.options, c.runtime, trainJob(c.job), upstreams(t))
			before := w.jobSet()
			for range 2 {
				w.settle()
			}
			if w.podGroup() != nil || w.workload() != nil {
				t.Error("the job has a group, and none of its pods is in it")
			}
			if after := w.jobSet(); after.ResourceVersion != before.ResourceVersion {
				t.Error("its JobSet was changed")
			}
		})
	}
}

// A running gang of another runtime's spelling retains the groups of its pods, and gets no others.
func TestTakeover_RunningJobKeepsTheGroupsOfItsPods(t *testing.T) {
	theirs := upstreams(t, func(jobSet *jobsetv1alpha2.JobSet) {
		jobs := jobSet.Spec.ReplicatedJobs
		helper := jobs[0].DeepCopy()
		helper.Name = "helper"
		jobs[0].Template.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{
			PodGroupName: new("train-node"),
		}
		jobSet.Spec.ReplicatedJobs = append(jobs, *helper)
	})
	w := newFixture(t, sharing(), grouped(), trainJob(), theirs)
	w.settle()
	groups := w.groups()
	if _, ok := groups["train-node"]; !ok || len(groups) != 1 {
		t.Errorf("groups %v, want train-node alone", groups)
	}
	if got := w.workload(); got == nil || len(got.Spec.PodGroupTemplates) != 1 {
		t.Errorf("workload %v, want one with one template", got)
	}
}

// Lockstep plans a queued job of another controller: it becomes a gang where gangs are the default, and starts as one.
func TestTakeover_QueuedJobIsPlannedAnew(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)), upstreams(t, waits))
	w.refused = immutable()
	w.settle()
	w.refused = nil
	w.settle()
	w.change(suspend(false))
	w.settle()
	if w.members() != 1 || w.podGroup() == nil {
		t.Errorf("%d members, group %v", w.members(), w.podGroup())
	}
	if !w.state().Spec.Decisions.GangByDefault {
		t.Error("the frozen decision is that of another controller")
	}
}

// After a flip of the default a running job is unchanged, also if its frozen state was lost with its copy.
func TestTakeover_FlippedDefaultLeavesRunningJobsAlone(t *testing.T) {
	for name, options := range map[string][2]plan.Options{"on": {{}, gang()}, "off": {gang(), {}}} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, options[0], torch(), trainJob())
			w.settle()
			had := w.podGroup() != nil
			if err := w.Client.Delete(t.Context(), w.state()); err != nil {
				t.Fatal(err)
			}
			if err := w.Client.Delete(t.Context(), w.copied()); err != nil {
				t.Fatal(err)
			}
			w.Options = options[1]
			w.settle()
			if has := w.podGroup() != nil; has != had {
				t.Errorf("a group: %t before, %t after", had, has)
			}
		})
	}
}

// A job that is taken over again after Kubeflow Trainer has recreated its JobSet is planned again: an earlier rendering
// of the same content proves nothing about another controller's JobSet.
func TestTakeover_SecondOneReplacesAgain(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	if err := w.Client.Delete(t.Context(), w.jobSet()); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Create(t.Context(), upstreams(t, waits)); err != nil {
		t.Fatal(err)
	}
	w.refused = immutable()
	w.change(suspend(false))
	for range 2 {
		w.settle()
	}
	if w.members() != 1 {
		t.Error("the JobSet is still another controller's")
	}
}
