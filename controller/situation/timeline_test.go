package situation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/situation"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// timeline is a job with a new status each minute.
type timeline struct {
	known situation.Known
	lines []string
}

// newTimeline begins with a gang of four pods that its owner has not suspended, and that the scheduler has not reported
// on.
func newTimeline() *timeline {
	jobSet := &jobsetv1alpha2.JobSet{}
	node := jobsetv1alpha2.ReplicatedJob{Name: "node", Replicas: 1}
	node.Template.Spec.Parallelism = new(int32(4))
	node.Template.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("train")}
	jobSet.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{{Name: "dataset-initializer", Replicas: 1}, node}
	jobSet.Name = "job"
	return &timeline{known: situation.Known{
		Job: &trainerv1alpha1.TrainJob{}, JobSet: jobSet,
		Groups: []schedulingv1beta1.PodGroup{{ObjectMeta: metav1.ObjectMeta{Name: "train"}}},
		Now:    time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC),
	}}
}

// tell lets a minute pass, in which something happens, and records the job's status and Events.
func (s *timeline) tell(what string, happens func()) {
	s.known.Now = s.known.Now.Add(time.Minute)
	if happens != nil {
		happens()
	}
	before := s.known.Job.Status.Scheduling
	after := situation.Of(s.known)
	s.known.Job.Status.Scheduling = after
	s.lines = append(s.lines, "== "+what, picture(after))
	for _, event := range situation.News(before, after) {
		s.lines = append(s.lines, fmt.Sprintf("   %s %s: %s", event.Type, event.Reason, event.Message))
	}
}

// picture prints a status on one line.
func picture(s *trainerv1alpha1.SchedulingStatus) string {
	parts := []string{string(s.Phase)}
	if s.Reason != "" {
		parts = append(parts, "("+s.Reason+")")
	}
	if s.WaitingSince != nil {
		parts = append(parts, "waits since "+s.WaitingSince.Format("15:04"))
	}
	if p := s.Placement; p != nil {
		parts = append(
			parts,
			fmt.Sprintf("on %d nodes of %s q=%s since %s", p.Nodes, p.Domain, p.Quality, p.Since.Format("15:04")),
		)
	}
	if q := s.Queue; q != nil {
		parts = append(parts, fmt.Sprintf("position %d", q.Position))
		if q.ExpectedStart != nil {
			parts = append(parts, "starts "+q.ExpectedStart.Format("15:04")+" in "+q.Reservation)
		}
	}
	for _, c := range s.Conditions {
		sign := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "+", metav1.ConditionFalse: "-"}[c.Status]
		parts = append(parts, sign+c.Type)
	}
	return strings.Join(parts, " ")
}

// says has the scheduler set a condition of the group.
func (s *timeline) says(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.known.Groups[0].Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(s.known.Now),
	})
}

// waits has the scheduler report that the gang waits, as package explanation does.
func (s *timeline) waits(message string, turn standing.Turn) {
	s.says(standing.Waiting, metav1.ConditionTrue, "NoRoom", message)
	s.says(standing.Queued, metav1.ConditionTrue, "NoRoom", turn.String())
	s.says(standing.Placed, metav1.ConditionFalse, "NoRoom", "the gang waits")
}

func (s *timeline) placed(domain string) {
	meta.RemoveStatusCondition(&s.known.Groups[0].Status.Conditions, schedulingv1beta1.DisruptionTarget)
	s.says(standing.Waiting, metav1.ConditionFalse, "Placed", "the gang has its nodes")
	s.says(standing.Queued, metav1.ConditionFalse, "Placed", "the gang does not wait")
	s.says(
		standing.Placed,
		metav1.ConditionTrue,
		"Placed",
		standing.Place{Nodes: 4, Domain: domain, Quality: 0.5}.String(),
	)
}

func (s *timeline) ready(ready int32) {
	s.known.JobSet.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{
		{Name: "dataset-initializer", Succeeded: 1}, {Name: "node", Ready: ready, Active: 1},
	}
}

func (s *timeline) want(t *testing.T, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(want), "\n"), s.lines); diff != "" {
		t.Errorf("the timeline (-want +got):\n%s", diff)
	}
}

// initializes has the trainer of the timeline wait until its data is fetched.
func (s *timeline) initializes() {
	s.known.JobSet.Spec.ReplicatedJobs[1].DependsOn = []jobsetv1alpha2.DependsOn{
		{Name: "dataset-initializer", Status: jobsetv1alpha2.DependencyComplete},
	}
}

// pods sets the JobSet's status of its pods.
func (s *timeline) pods(statuses ...jobsetv1alpha2.ReplicatedJobStatus) {
	s.known.JobSet.Status.ReplicatedJobsStatus = statuses
}
