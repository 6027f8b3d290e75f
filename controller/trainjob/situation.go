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

// situate writes status.scheduling. Of a job whose JobSet was made or resumed just now there is nothing to say yet.
func (r *Reconciler) situate(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet, hindrance string,
) error {
	if !job.Ended() && !suspended(job) && hindrance == "" && !runs(jobSet) {
		return nil
	}
	var groups schedulingv1beta1.PodGroupList
	err := r.Client.List(ctx, &groups, client.InNamespace(job.Namespace), client.MatchingFields{GroupIndex: job.Name},
		client.UnsafeDisableDeepCopy) // they are only looked at
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing the PodGroups of TrainJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	var there []schedulingv1beta1.PodGroup
	for i := range groups.Items {
		// Groups of a job that has ended are only read for what they say of its ranks, until they are gone.
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

// refused returns the ReplicatedJobs of a job that is to run whose pods are not let in, and why. They are asked of while pods are missing.
func (r *Reconciler) refused(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) map[string]string {
	if job.Ended() || suspended(job) || !runs(jobSet) || !situation.LacksPods(jobSet) {
		return nil
	}
	return r.Levels.Refused(ctx, job.Namespace, jobSet)
}

const (
	// An Event is gone after an hour, and a user who looks after two must still find out why his job waits.
	remindAfter = 50 * time.Minute
	// startsWithin is how long the pods of a gang may take to exist, and a scheduler to look at them, before its owner is told.
	startsWithin = time.Minute
)

// reminders know when each job that waits was last told why.
type reminders struct {
	mu   sync.Mutex
	told map[types.NamespacedName]reminder
}

// reminder is when the job of that UID was told.
type reminder struct {
	uid types.UID
	at  time.Time
}

// tell tells a job's owner what is new, and again what has long been so. It returns when to come back for that; zero for never.
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

// drop forgets a job that no longer waits, or is gone.
func (m *reminders) drop(job types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.told, job)
}

// keep remembers that a job was told now.
func (m *reminders) keep(job *trainerv1alpha1.TrainJob, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told == nil {
		m.told = make(map[types.NamespacedName]reminder)
	}
	m.told[client.ObjectKeyFromObject(job)] = reminder{job.UID, now}
}

// left returns how long it is until a job has to be reminded; zero for now. A job of which nothing is known, since this process just
// started, was told some time within the last hour; when is guessed, so that not all come at once.
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
