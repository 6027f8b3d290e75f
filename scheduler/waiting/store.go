package waiting

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/statemap"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

const (
	// storePause is how often the state is written at most.
	storePause = 10 * time.Second
	// storeAge is how old the written state may be while there are leases: idle is counted in it.
	storeAge = time.Minute
)

// Store keeps the state of a queue in a ConfigMap, for the next scheduler. Places of thousands of nodes stay far below the megabyte that an object may have.
type Store struct {
	at    statemap.Map
	queue *Queue
	clock timing.Timing

	mu      sync.Mutex
	loaded  bool
	written int
	since   time.Time
}

// NewStore returns the store of a queue. Nothing is read or written yet.
func NewStore(client kubernetes.Interface, namespace, name string, queue *Queue, t timing.Timing) *Store {
	at := statemap.Map{Client: client, Namespace: namespace, Name: name}
	return &Store{at: at, queue: queue, clock: t}
}

// Load restores the state of the last scheduler, once. A scheduler that stands by must not call it before it schedules: the state would
// be that of another time. A state that cannot be read is logged, and the queue starts without.
func (s *Store) Load(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		return
	}
	s.loaded = true
	var state State
	found, err := s.at.Read(ctx, &state)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Reading the leases of the last scheduler; starting without them",
			"configMap", klog.KRef(s.at.Namespace, s.at.Name))
	}
	if err != nil || !found {
		return
	}
	s.queue.Restore(state)
	klog.FromContext(ctx).Info("Restored leases", "leases", len(state.Machine.Leases))
}

// Run writes the state until the context ends: soon after a lease has changed, and every minute while there is one.
func (s *Store) Run(ctx context.Context) {
	s.clock.AfterFunc(storePause, func() {
		if ctx.Err() != nil {
			return
		}
		s.save(ctx)
		s.Run(ctx)
	})
}

// save writes the state if it is worth it.
func (s *Store) save(ctx context.Context) {
	changes := s.queue.Changes()
	s.mu.Lock()
	due := s.loaded && (changes != s.written || s.queue.Leasing() && s.clock.Clock.Since(s.since) >= storeAge)
	s.mu.Unlock()
	if !due {
		return
	}
	content, err := statemap.Encode(s.queue.State())
	if err == nil {
		err = s.at.Write(ctx, content)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Writing the leases", "configMap", klog.KRef(s.at.Namespace, s.at.Name))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written, s.since = changes, s.clock.Clock.Now()
}
