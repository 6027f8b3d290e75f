package trainjob

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/situation"
)

// situate writes status.scheduling. It skips a job whose JobSet was only just created or resumed.
func (r *Reconciler) situate(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet, hindrance string,
) error {
	if !job.Ended() && !suspended(job) && hindrance == "" && !runs(jobSet) {
		return nil
	}
	var groups schedulingv1beta1.PodGroupList
	err := r.Client.List(ctx, &groups, client.InNamespace(job.Namespace), client.MatchingFields{GroupIndex: job.Name},
		client.UnsafeDisableDeepCopy) // they are only read
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing the PodGroups of TrainJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	var there []schedulingv1beta1.PodGroup
	for i := range groups.Items {
		// Groups of a job that has ended are only read for the state of its ranks, until they are deleted.
		if group := &groups.Items[i]; owns(job, group) && (group.DeletionTimestamp.IsZero() || job.Ended()) {
			there = append(there, *group)
		}
	}
	now := r.Clock.Now()
	first := firstEstimate(job, now)
	var elastic *trainerv1alpha1.ElasticStatus
	if at := elasticGroup(there); job.Ended() && job.Status.Scheduling != nil {
		elastic = job.Status.Scheduling.Elastic
	} else if at >= 0 {
		if elastic, err = r.elastic(ctx, job, jobSet, &there[at]); err != nil {
			return err
		}
	}
	job.Status.Scheduling = situation.Of(situation.Known{
		Job: job, JobSet: jobSet, Groups: there, Hindrance: hindrance, Refused: r.refused(ctx, job, jobSet),
		Elastic: elastic, Now: now,
	})
	job.Status.Scheduling.FirstEstimate = first
	r.reports.learn(job)
	return nil
}

// refused returns the ReplicatedJobs of a job that is to run whose pods Pod Security refuses, and the reasons. It
// evaluates them only while pods are missing.
func (r *Reconciler) refused(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) map[string]string {
	if job.Ended() || suspended(job) || !runs(jobSet) || !situation.LacksPods(jobSet) {
		return nil
	}
	return r.Levels.Refused(ctx, job.Namespace, jobSet)
}

const (
	// The API server deletes an Event after an hour, and a user who looks after two hours must still see why the job
	// waits.
	remindAfter = 50 * time.Minute
	// startsWithin is the time within which the pods of a gang have to exist and a scheduler has to evaluate them;
	// after it the gang's owner gets an Event.
	startsWithin = time.Minute
)

// reminders holds the time of each waiting job's last Event.
type reminders struct {
	mu   sync.Mutex
	told map[types.NamespacedName]reminder
}

// reminder is the time of the last Event for the job of that UID.
type reminder struct {
	uid types.UID
	at  time.Time
}

// tell writes Events for the news of a job, and repeats a standing reason after remindAfter. It returns the requeue
// delay for that; zero for never.
func (r *Reconciler) tell(before, after *trainerv1alpha1.TrainJob) time.Duration {
	status := after.Status.Scheduling
	if status == nil {
		return 0
	}
	news := situation.News(before.Status.Scheduling, status)
	told, _ := situation.Standing(before.Status.Scheduling)
	why, waits := situation.Standing(status)
	now := r.Clock.Now()
	if waits && len(news) == 0 && r.reminders.left(after, now) == 0 {
		news = append(news, why)
	}
	for _, event := range news {
		r.Recorder.Eventf(after, event.Type, event.Reason, "%s", event.Message)
	}
	switch {
	case !waits:
		r.reminders.drop(client.ObjectKeyFromObject(after))
		return 0
	case why.Passes() && why.Reason != told.Reason:
		r.reminders.keep(after, now.Add(startsWithin-remindAfter))
	case len(news) > 0:
		r.reminders.keep(after, now)
	}
	return r.reminders.left(after, now)
}

// drop forgets a job that no longer waits, or was deleted.
func (m *reminders) drop(job types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.told, job)
}

// keep records an Event for a job now.
func (m *reminders) keep(job *trainerv1alpha1.TrainJob, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told == nil {
		m.told = make(map[types.NamespacedName]reminder)
	}
	m.told[client.ObjectKeyFromObject(job)] = reminder{job.UID, now}
}

// left returns the time until a job has to be reminded; zero for now. A job without a record, since this process just
// started, got its Event some time within the last hour; the time is derived from its UID, so that not all are due at
// once.
func (m *reminders) left(job *trainerv1alpha1.TrainJob, now time.Time) time.Duration {
	m.mu.Lock()
	last, known := m.told[client.ObjectKeyFromObject(job)]
	m.mu.Unlock()
	if !known || last.uid != job.UID {
		last.at = now.Add(-guess(job.UID))
		m.keep(job, last.at)
	}
	return max(0, last.at.Add(remindAfter).Sub(now))
}

// guess spreads jobs over the time between two reminders.
func guess(uid types.UID) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	return time.Duration(h.Sum32()) % remindAfter
}
