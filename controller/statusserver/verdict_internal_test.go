package statusserver

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// ten is the instant at which the standing report of these tests was written.
func ten() time.Time { return time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC) }

// said returns a changed report of ten o'clock.
func said(change func(*trainerv1alpha1.TrainerStatus)) *trainerv1alpha1.TrainerStatus {
	status := &trainerv1alpha1.TrainerStatus{
		ProgressPercentage: new(
			int32(40),
		),
		EstimatedRemainingSeconds: new(int32(3600)),
		LastUpdatedTime:           metav1.NewTime(ten()),
		Metrics:                   []trainerv1alpha1.Metric{{Name: "loss", Value: "0.5"}, {Name: "epoch", Value: "1"}},
	}
	if change != nil {
		change(status)
	}
	return status
}

// A report that changes a decision, or for which a user waits, is written at once, but no more often than every five
// seconds; everything else waits for half a minute.
func TestStanding_Due(t *testing.T) {
	const soon, now, late = 2 * time.Second, 0, 40 * time.Second
	for name, test := range map[string]struct {
		standing func(*trainerv1alpha1.TrainerStatus)
		none     bool
		report   func(*trainerv1alpha1.TrainerStatus)
		pod      member
		job      func(*trainerv1alpha1.TrainJob)
		// after is the time of its arrival, and waits the time until it is due.
		after, waits time.Duration
	}{
		"the first":         {none: true, after: soon, waits: now},
		"nothing new":       {after: soon, waits: Period - soon},
		"nothing new, late": {after: late, waits: now},
		"a loss": {
			after: soon, waits: Period - soon,
			report: func(s *trainerv1alpha1.TrainerStatus) { s.Metrics[0].Value = "0.4" },
		},
		"progress": {
			after: soon, waits: Period - soon, report: func(s *trainerv1alpha1.TrainerStatus) { *s.ProgressPercentage = 60 },
		},
		"complete": {
			after: soon, waits: now, report: func(s *trainerv1alpha1.TrainerStatus) { *s.ProgressPercentage = 100 },
		},
		"complete still": {
			after: soon, waits: Period - soon,
			standing: func(s *trainerv1alpha1.TrainerStatus) { *s.ProgressPercentage = 100 },
			report:   func(s *trainerv1alpha1.TrainerStatus) { *s.ProgressPercentage = 100 },
		},
		"complete no longer": {
			after: soon, waits: now, standing: func(s *trainerv1alpha1.TrainerStatus) { *s.ProgressPercentage = 100 },
		},
		"progress is gone": {
			after: soon, waits: Period - soon, report: func(s *trainerv1alpha1.TrainerStatus) { s.ProgressPercentage = nil },
		},
		"an estimate that moves a little": {
			after: soon, waits: Period - soon,
			report: func(s *trainerv1alpha1.TrainerStatus) { *s.EstimatedRemainingSeconds = 3700 },
		},
		"an estimate that moves a lot": {
			after: soon, waits: Spacing - soon,
			report: func(s *trainerv1alpha1.TrainerStatus) { *s.EstimatedRemainingSeconds = 7200 },
		},
		"an estimate beyond the deadline": {
			after: soon, waits: Period - soon, job: func(j *trainerv1alpha1.TrainJob) { j.Spec.ActiveDeadlineSeconds = 3600 },
			report: func(s *trainerv1alpha1.TrainerStatus) { *s.EstimatedRemainingSeconds = 7200 },
		},
		"a checkpoint": {
			after: 7 * time.Second, waits: Period - 7*time.Second,
			standing: func(s *trainerv1alpha1.TrainerStatus) {
				s.Metrics[1] = trainerv1alpha1.Metric{Name: "checkpoint_unix_seconds", Value: "1795514350.2"}
			},
			report: func(s *trainerv1alpha1.TrainerStatus) {
				s.Metrics[1] = trainerv1alpha1.Metric{Name: "checkpoint_unix_seconds", Value: "1795514350.7"}
			},
		},
		"a newer checkpoint": {
			after: 7 * time.Second, waits: now,
			standing: func(s *trainerv1alpha1.TrainerStatus) {
				s.Metrics[1] = trainerv1alpha1.Metric{Name: "checkpoint_unix_seconds", Value: "1795514350"}
			},
			report: func(s *trainerv1alpha1.TrainerStatus) {
				s.Metrics[1] = trainerv1alpha1.Metric{Name: "checkpoint_unix_seconds", Value: "1795514390"}
			},
		},
		"another metric": {
			after: soon, waits: Spacing - soon,
			report: func(s *trainerv1alpha1.TrainerStatus) { s.Metrics[1].Name = "eval_loss" },
		},
		"metrics in another order": {
			after: soon, waits: Period - soon,
			report: func(s *trainerv1alpha1.TrainerStatus) { s.Metrics[0], s.Metrics[1] = s.Metrics[1], s.Metrics[0] },
		},
		"a pod that was created since": {
			after: soon, waits: Spacing - soon, pod: member{uid: "second", created: ten().Add(time.Second)},
		},
		"another pod that was there before": {
			after: soon, waits: Period - soon, pod: member{uid: "second", created: ten().Add(-time.Hour)},
		},
		"a job that is over": {
			after: soon, waits: Spacing - soon, job: func(j *trainerv1alpha1.TrainJob) {
				j.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stands := standing{status: said(test.standing), pod: "first", since: ten(), heard: ten()}
			if test.none {
				stands = standing{}
			}
			job := &trainerv1alpha1.TrainJob{}
			job.CreationTimestamp = metav1.NewTime(ten().Add(-time.Minute))
			if test.job != nil {
				test.job(job)
			}
			if test.pod.uid == "" {
				test.pod = member{uid: "first", created: ten().Add(-time.Minute)}
			}
			now := ten().Add(test.after)
			got := stands.due(job, report{status: said(test.report), by: test.pod, at: now}, now, Period)
			if waits := max(0, got.Sub(now)); waits != test.waits {
				t.Errorf("waits for %v, want %v", waits, test.waits)
			}
		})
	}
}

// Trainers' clocks order the reports of a run. They can be wrong for ever, so that they count within bounds.
func TestStanding_SupersededBy(t *testing.T) {
	first := member{uid: "first", created: ten().Add(-time.Hour)}
	second := member{uid: "second", created: ten().Add(20 * time.Second)}
	for name, test := range map[string]struct {
		stands, report, arrives time.Duration // by the trainer's clock, and by ours, after ten
		pod                     member
		want                    bool
	}{
		"newer":                              {stands: 0, report: 5 * time.Second, arrives: 5 * time.Second, pod: first, want: true},
		"of the same second":                 {stands: 0, report: 0, arrives: time.Second, pod: first, want: true},
		"older":                              {stands: 0, report: -time.Second, arrives: time.Second, pod: first},
		"older, by a clock that is ahead":    {stands: 30 * time.Second, report: 25 * time.Second, arrives: time.Second, pod: first},
		"from years ahead":                   {stands: 9000 * time.Hour, report: 30 * time.Second, arrives: 30 * time.Second, pod: first},
		"from years ahead, a minute later":   {stands: 9000 * time.Hour, report: 61 * time.Second, arrives: 61 * time.Second, pod: first, want: true},
		"of a later pod with a slow clock":   {stands: 0, report: -10 * time.Minute, arrives: 30 * time.Second, pod: second, want: true},
		"of a later pod, seen already":       {stands: 25 * time.Second, report: 24 * time.Second, arrives: 30 * time.Second, pod: second},
		"of an earlier pod that is mistaken": {stands: 25 * time.Second, report: 20 * time.Second, arrives: 30 * time.Second, pod: first},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(d time.Duration) *trainerv1alpha1.TrainerStatus {
				return said(func(s *trainerv1alpha1.TrainerStatus) { s.LastUpdatedTime = metav1.NewTime(ten().Add(d)) })
			}
			stands := standing{status: at(test.stands), pod: "", since: ten(), heard: ten()}
			if got := stands.supersededBy(report{status: at(test.report), by: test.pod}); got != test.want {
				t.Errorf("superseded: %t, want %t", got, test.want)
			}
		})
	}
}
