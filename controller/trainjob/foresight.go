package trainjob

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/foresight"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

const (
	// rememberedRuns and rememberedRecords bound the remembered reports: a hundred bytes of each run, a kilobyte of
	// each runtime.
	rememberedRuns    = 65536
	rememberedRecords = 4096
)

// reports hold the accuracy of trainers' reports. A restart forgets the tracks of runs, which are learned anew within
// minutes; records it finds in the status of jobs that have completed. The zero value knows nothing yet.
type reports struct {
	mu      sync.Mutex
	runs    *lru.Cache // run by types.UID
	records *lru.Cache // foresight.Record by recordKey
}

// run is one run of a job, from its creation or a resumption on.
type run struct {
	began time.Time
	track foresight.Track
	// said is the time in the last recorded report, by the trainer's clock.
	said time.Time
}

// recordKey is a runtime as the jobs of one namespace use it: the reports of one tenant's trainers are no evidence
// about another's.
type recordKey struct {
	namespace string
	runtime   resolve.Reference
}

func keyOf(job *trainerv1alpha1.TrainJob) recordKey {
	return recordKey{job.Namespace, resolve.ReferenceOf(job)}
}

// end records the report of a job's trainer, and returns the end that follows from it; zero if it reports no end.
func (m *reports) end(job *trainerv1alpha1.TrainJob, now time.Time) time.Time {
	began := plan.ActiveSince(job)
	report, ok := foresight.Reported(job.Status.TrainerStatus, began, now)
	if !ok {
		return time.Time{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin()
	current := run{began, foresight.Begin(report), job.Status.TrainerStatus.LastUpdatedTime.Time}
	known, _ := m.runs.Get(job.UID)
	if last, ok := known.(run); ok && last.began.Equal(began) {
		current.track = last.track
		// A report of a clock that is ahead counts as one of now (foresight.Reported). Taken in on each reconcile, it
		// would be a new one each time, and its end would move away.
		if !current.said.Equal(last.said) {
			current.track = last.track.Then(report)
		}
	}
	m.runs.Add(job.UID, current)
	return current.track.End(m.record(keyOf(job)).Factor())
}

// learn compares a completed job's end with its trainer's first estimate, and records the result.
func (m *reports) learn(job *trainerv1alpha1.TrainJob) {
	complete := meta.FindStatusCondition(job.Status.Conditions, trainerv1alpha1.TrainJobComplete)
	status := job.Status.Scheduling
	if complete == nil || complete.Status != metav1.ConditionTrue || status == nil || status.FirstEstimate == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin()
	m.runs.Remove(job.UID)
	first := status.FirstEstimate
	m.records.Add(keyOf(job), m.record(keyOf(job)).With(foresight.Outcome{
		UID:      job.UID,
		Promised: foresight.Report{At: first.ReportedAt.Time, End: first.End.Time},
		Ended:    complete.LastTransitionTime.Time,
	}))
}

func (m *reports) begin() {
	if m.runs == nil {
		m.runs, m.records = lru.New(rememberedRuns), lru.New(rememberedRecords)
	}
}

func (m *reports) record(key recordKey) foresight.Record {
	known, _ := m.records.Get(key)
	record, _ := known.(foresight.Record) // the zero value is empty
	return record
}

// firstEstimate returns the first estimate of a job's run to be remembered: the present one, unless that is of an
// earlier run. A job that has ended retains its estimate.
func firstEstimate(job *trainerv1alpha1.TrainJob, now time.Time) *trainerv1alpha1.FirstEstimate {
	began := plan.ActiveSince(job)
	var known *trainerv1alpha1.FirstEstimate
	if job.Status.Scheduling != nil {
		known = job.Status.Scheduling.FirstEstimate
	}
	if job.Ended() || known != nil && !known.ReportedAt.Time.Before(began) {
		return known
	}
	report, ok := foresight.Reported(job.Status.TrainerStatus, began, now)
	if !ok {
		return nil
	}
	return &trainerv1alpha1.FirstEstimate{ReportedAt: metav1.NewTime(report.At), End: metav1.NewTime(report.End)}
}
