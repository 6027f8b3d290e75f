package statusserver

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

const (
	// idleJob is the time for which a job that does not report is remembered. Its state is read from its TrainJob again
	// afterwards.
	idleJob = 5 * time.Minute
	// conflictWait is the time that a write waits for a cache that showed an outdated TrainJob.
	conflictWait = time.Second
	// spread is the part of Period over which jobs' writes are strewn, so that replicas rarely write the same job at
	// once.
	spread = 4 * time.Second
)

// outcome is the fate of a report that was accepted.
type outcome string

const (
	outcomeHeld      outcome = "held"
	outcomeOlder     outcome = "older"
	outcomeUnchanged outcome = "unchanged"
)

// held stores the newest report of each job until it is written: one report of at most BodyLimit bytes for each
// TrainJob with an authenticated pod.
type held struct {
	clock clock.PassiveClock
	salt  string

	mu    sync.Mutex
	jobs  map[types.UID]*reporting
	queue schedule
}

// reporting is a job that reports.
type reporting struct {
	uid     types.UID
	key     client.ObjectKey
	limiter flowcontrol.PassiveRateLimiter
	// period is Period for this job and replica, less up to spread.
	period time.Duration
	// lastSeen is the time of the job's last report, and looked that of the last read of its TrainJob.
	lastSeen, looked time.Time

	standing standing
	// base is the resourceVersion that the next write replaces, and written the one that the last write made.
	base, written string
	// next is the newest report that is not written yet, and writing the one that is being written, next unless a newer
	// one arrived since; nil for none. While there is writing, there is next.
	next, writing *report
	// due is the time at which next is to be written, and notBefore holds it back after a failure.
	due, notBefore time.Time
	failures       int
	// place is the job's index in the queue; -1 if it is not in it.
	place int
}

func newHeld(c clock.PassiveClock, salt string) *held {
	return &held{clock: c, salt: salt, jobs: map[types.UID]*reporting{}}
}

// admit takes one report from the job's limit, if there is one left.
func (h *held) admit(job *trainerv1alpha1.TrainJob) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry := h.jobs[job.UID]
	if entry == nil {
		entry = &reporting{
			uid: job.UID, key: client.ObjectKeyFromObject(job), place: -1,
			period:  Period - h.share("period", job.UID, spread),
			limiter: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(jobPerSecond, jobBurst, h.clock),
		}
		h.jobs[job.UID] = entry
	}
	entry.lastSeen = h.clock.Now()
	return entry.limiter.TryAccept()
}

// offer holds a report of an admitted job until it is due, in place of the one that is held.
func (h *held) offer(job *trainerv1alpha1.TrainJob, r report) outcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry := h.jobs[job.UID]
	if entry == nil { // forgotten since; the next report is in time
		return outcomeOlder
	}
	now := h.clock.Now()
	h.look(entry, job, now)
	latest := entry.latest()
	switch {
	case !latest.supersededBy(r):
		return outcomeOlder
	case same(latest.status, r.status):
		return outcomeUnchanged
	}
	entry.next = &r
	h.plan(entry, job, now)
	return outcomeHeld
}

// latest is the newest report of the job that was accepted, as if it stood.
func (r *reporting) latest() standing {
	if r.next != nil {
		return r.next.standingSince(r.next.at)
	}
	return r.standing
}

// look adopts the TrainJob's status. A report that another replica wrote since the last look counts as written when its
// trainer sent it, but after that look and not in the future: the next write is neither early nor late by more than a
// report's travel time. It counts as received now, so that no older report replaces it. A report that this replica's
// first look finds counts as written at an instant that is different for each job, so that the jobs of a starting
// replica are not all due at once.
func (h *held) look(entry *reporting, job *trainerv1alpha1.TrainJob, now time.Time) {
	defer func() { entry.looked = now }()
	if order, err := resourceversion.CompareResourceVersion(
		job.ResourceVersion,
		entry.written,
	); err == nil &&
		order < 0 {
		return // the cache does not show our own write yet
	}
	entry.base = job.ResourceVersion
	status := job.Status.TrainerStatus
	switch {
	case same(status, entry.standing.status):
	case entry.looked.IsZero():
		since := now.Add(-h.share("phase", entry.uid, entry.period))
		entry.standing = standing{status: status, since: since, heard: now}
	default:
		since := entry.looked
		if status != nil && status.LastUpdatedTime.Time.Before(now) {
			since = later(since, status.LastUpdatedTime.Time)
		} else if status != nil {
			since = now
		}
		entry.standing = standing{status: status, since: since, heard: now}
	}
}

// plan puts the job into the queue. A report that stands already is not written again. The caller has called look for
// the job.
func (h *held) plan(entry *reporting, job *trainerv1alpha1.TrainJob, now time.Time) {
	if entry.writing != nil {
		return // put into the queue when that is done
	}
	if entry.next == nil || !entry.standing.supersededBy(*entry.next) ||
		same(entry.standing.status, entry.next.status) {
		entry.next = nil
		h.unqueue(entry)
		return
	}
	due := entry.standing.due(job, *entry.next, now, entry.period)
	h.enqueue(entry, later(due, entry.notBefore))
}

// share returns a part of a duration that differs by job, replica and purpose.
func (h *held) share(purpose string, uid types.UID, of time.Duration) time.Duration {
	const parts = 1 << 16
	hash := sha256.Sum256([]byte(h.salt + purpose + string(uid)))
	return of * time.Duration(binary.LittleEndian.Uint16(hash[:])) / parts
}

func (h *held) enqueue(entry *reporting, due time.Time) {
	entry.due = due
	if entry.place >= 0 {
		heap.Fix(&h.queue, entry.place)
		return
	}
	heap.Push(&h.queue, entry)
}

func (h *held) unqueue(entry *reporting) {
	if entry.place >= 0 {
		heap.Remove(&h.queue, entry.place)
	}
}

// count returns the number of jobs that reported not long ago, and the number of those with a report that waits.
func (h *held) count() (jobs, waiting int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.jobs), len(h.queue)
}

// unwritten returns the number of jobs with a report that waits or is being written.
func (h *held) unwritten() (jobs int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, entry := range h.jobs {
		if entry.next != nil {
			jobs++
		}
	}
	return jobs
}

// forgetIdle forgets jobs that no longer report, so that ended or deleted jobs use no memory.
func (h *held) forgetIdle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	for uid, entry := range h.jobs {
		if entry.next == nil && now.Sub(entry.lastSeen) >= idleJob {
			delete(h.jobs, uid)
		}
	}
}
