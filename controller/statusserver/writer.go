package statusserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

const (
	// writers is the number of reports that are written at a time.
	writers = 32
	// glance is the interval at which the writer looks for reports that are due.
	glance = 100 * time.Millisecond
	// sweep is the interval at which it forgets idle jobs.
	sweep = time.Minute
)

// writer writes held reports into the status of their TrainJobs when they are due.
type writer struct {
	cached client.Reader
	live   client.Client
	clock  clock.PassiveClock
	held   *held

	writes *prometheus.CounterVec
	delays prometheus.Observer
}

// The results of a write, as lockstep_status_server_writes_total counts them.
const (
	resultWritten  = "written"
	resultConflict = "conflict"
	resultGone     = "gone"
	resultRefused  = "refused"
	resultFailed   = "failed"
)

// run writes until ctx ends, and returns when nothing is being written any more.
func (w *writer) run(ctx context.Context) {
	slots := newSlots()
	defer slots.group.Wait()
	go wait.UntilWithContext(ctx, func(context.Context) { w.held.forgetIdle() }, sweep)
	wait.UntilWithContext(ctx, func(ctx context.Context) { w.writeDue(ctx, slots) }, glance)
}

// writeDue starts the due writes, one job after the other.
func (w *writer) writeDue(ctx context.Context, s *slots) {
	for ctx.Err() == nil {
		horizon := w.clock.Now()
		next, ok := w.held.take(horizon)
		if !ok {
			return
		}
		// A write in progress when the server ends is completed.
		s.do(func() { w.safely(context.WithoutCancel(ctx), w.cached, next, horizon) })
	}
}

// drain writes all that is held, whether it is due or not, the earliest reports first. It repeats failed writes until
// ctx ends, and returns the number of reports that are left, those in progress included.
func (w *writer) drain(ctx context.Context) (left int) {
	w.held.hurry()
	reader, horizon := w.cached, w.clock.Now().Add(Period)
	_ = wait.PollUntilContextCancel(ctx, glance, true, func(ctx context.Context) (bool, error) {
		w.pass(ctx, reader, horizon)
		// The cache may have ended, and would show the conflicting version for ever.
		reader = w.live
		return w.held.unwritten() == 0, nil
	})
	return w.held.unwritten()
}

// pass tries each report once that is held at its beginning.
func (w *writer) pass(ctx context.Context, reader client.Reader, horizon time.Time) {
	slots := newSlots()
	defer slots.group.Wait()
	_, waiting := w.held.count()
	for range waiting {
		next, ok := w.held.take(horizon)
		if !ok || ctx.Err() != nil {
			return
		}
		slots.do(func() { w.safely(ctx, reader, next, horizon) })
	}
}

// slots bound how many writes there are at a time.
type slots struct {
	free  chan struct{}
	group sync.WaitGroup
}

func newSlots() *slots { return &slots{free: make(chan struct{}, writers)} }

// do starts something when a slot is free.
func (s *slots) do(something func()) {
	s.free <- struct{}{}
	s.group.Go(func() {
		defer func() { <-s.free }()
		something()
	})
}

// safely writes one job's report. An unforeseen one must not take all others with it.
func (w *writer) safely(ctx context.Context, reader client.Reader, next taken, horizon time.Time) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.FromContext(ctx).Error(nil, "Panic while writing a report", "trainJob", next.key, "cause", cause)
			w.held.drop(next.uid)
			w.writes.WithLabelValues(resultFailed).Inc()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.write(ctx, reader, next, horizon)
}

func (w *writer) write(ctx context.Context, reader client.Reader, next taken, horizon time.Time) {
	var job trainerv1alpha1.TrainJob
	err := reader.Get(ctx, next.key, &job)
	if err == nil && job.UID != next.uid || apierrors.IsNotFound(err) {
		w.held.forget(next.uid)
		return
	}
	if err != nil {
		w.settle(ctx, next.uid, fmt.Errorf("getting TrainJob %s: %w", next.key, err))
		return
	}
	confirmed, ok := w.held.confirm(&job, horizon)
	if !ok {
		return
	}
	version, err := confirmed.apply(ctx, w.live)
	if err != nil {
		w.settle(ctx, next.uid, err)
		return
	}
	w.held.written(next.uid, version)
	w.writes.WithLabelValues(resultWritten).Inc()
	w.delays.Observe(w.clock.Since(confirmed.at).Seconds())
}

// settle retries or drops a report that could not be written.
func (w *writer) settle(ctx context.Context, uid types.UID, err error) {
	log := klog.FromContext(ctx)
	result := resultFailed
	switch {
	case apierrors.IsConflict(err):
		result = resultConflict
		w.held.conflict(uid)
	case apierrors.IsNotFound(err):
		result = resultGone
		w.held.forget(uid)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		result = resultRefused
		w.held.drop(uid)
		log.Error(err, "Dropped a report that the API server refuses")
	default:
		w.held.retry(uid)
		log.Error(err, "Writing a report failed; retrying")
	}
	w.writes.WithLabelValues(result).Inc()
}
