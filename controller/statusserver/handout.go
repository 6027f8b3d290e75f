package statusserver

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

const (
	// firstRetry is the delay of a write after a failure; each further failure of the job doubles it, up to Period.
	firstRetry = time.Second
	// mostDoublings limits the doubled wait.
	mostDoublings = 5
)

// taken is a TrainJob whose report is handed out to be written.
type taken struct {
	key client.ObjectKey
	uid types.UID
}

// take returns the job that is due first, if it is due at the horizon. Its report is not handed out again before
// written, conflict, retry or drop reports the result.
func (h *held) take(horizon time.Time) (taken, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 || h.queue[0].due.After(horizon) {
		return taken{}, false
	}
	entry, ok := heap.Pop(&h.queue).(*reporting)
	if !ok {
		return taken{}, false
	}
	entry.writing = entry.next
	return taken{key: entry.key, uid: entry.uid}, true
}

// hurry orders the waiting reports by their arrival. Jobs that still report do so to another replica within seconds; a
// report that arrived longer ago may be its job's last.
func (h *held) hurry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, entry := range h.queue {
		entry.due = entry.next.at
	}
	heap.Init(&h.queue)
}

// write is a report to be written over one version of a TrainJob.
type write struct {
	key    client.ObjectKey
	base   string
	status *trainerv1alpha1.TrainerStatus
	// at is the time at which the report arrived.
	at time.Time
}

// confirm checks a taken job once more. ok is false if nothing is to be written by the horizon: another replica was
// faster.
func (h *held) confirm(object *trainerv1alpha1.TrainJob, horizon time.Time) (write, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry := h.jobs[object.UID]
	if entry == nil || entry.writing == nil {
		return write{}, false
	}
	now := h.clock.Now()
	entry.writing = nil
	h.look(entry, object, now)
	h.plan(entry, object, now)
	if entry.place < 0 || entry.due.After(later(now, horizon)) {
		return write{}, false
	}
	h.unqueue(entry)
	entry.writing = entry.next
	return write{key: entry.key, base: entry.base, status: entry.writing.status, at: entry.writing.at}, true
}

// written takes note of a write that succeeded, and of the TrainJob's version by then. A report that arrived meanwhile
// is checked soon.
func (h *held) written(uid types.UID, version string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry := h.jobs[uid]
	if entry == nil || entry.writing == nil {
		return
	}
	now := h.clock.Now()
	entry.standing = entry.writing.standingSince(now)
	entry.base, entry.written = version, version
	entry.failures, entry.notBefore = 0, time.Time{}
	h.finish(entry, now)
}

// conflict requeues a report whose TrainJob is not the version that the cache showed.
func (h *held) conflict(uid types.UID) {
	h.again(uid, func(*reporting) time.Duration { return conflictWait })
}

// retry requeues a report whose write failed.
func (h *held) retry(uid types.UID) {
	h.again(uid, func(entry *reporting) time.Duration {
		wait := min(Period, firstRetry<<min(entry.failures, mostDoublings))
		entry.failures++
		return wait
	})
}

func (h *held) again(uid types.UID, wait func(*reporting) time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry := h.jobs[uid]
	if entry == nil || entry.writing == nil {
		return
	}
	entry.writing = nil
	entry.notBefore = h.clock.Now().Add(wait(entry))
	h.enqueue(entry, entry.notBefore)
}

// drop gives up a report that cannot be written. The next one is tried.
func (h *held) drop(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry := h.jobs[uid]
	if entry == nil {
		return
	}
	entry.notBefore = h.clock.Now().Add(Spacing)
	h.finish(entry, entry.notBefore)
}

// finish is done with the report that was being written. A newer one is checked when it is due.
func (h *held) finish(entry *reporting, due time.Time) {
	if entry.next == entry.writing {
		entry.next = nil
	} else {
		h.enqueue(entry, due)
	}
	entry.writing = nil
}

// forget removes a deleted job.
func (h *held) forget(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if entry := h.jobs[uid]; entry != nil {
		h.unqueue(entry)
		delete(h.jobs, uid)
	}
}
