package runtimes

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/statemap"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

const (
	// pause is how often the history is written at most: the next scheduler lacks the runs that ended since.
	pause = 5 * time.Minute
	// mostBytes bounds the packed history: half of the megabyte that an object may have. The classes whose last run is longest ago are left out.
	mostBytes = 512 << 10
)

// Store keeps the history of a learner in a ConfigMap, for the next scheduler.
type Store struct {
	at      statemap.Map
	learner *Learner
	clock   timing.Timing

	mu      sync.Mutex
	loaded  bool
	written int
}

// NewStore returns the store of a learner. Nothing is read or written yet.
func NewStore(at statemap.Map, l *Learner, t timing.Timing) *Store {
	return &Store{at: at, learner: l, clock: t}
}

// Load restores the history of the last scheduler, once. A scheduler that stands by must not call it before it schedules: the history would be that of another
// time. A history that cannot be read is logged, and the learner starts without.
func (s *Store) Load(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		return
	}
	s.loaded = true
	var state state
	found, err := s.at.Read(ctx, &state)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Reading the run times of earlier workloads; starting without them",
			"configMap", klog.KRef(s.at.Namespace, s.at.Name))
	}
	if err != nil || !found {
		return
	}
	s.learner.restore(state)
	klog.FromContext(ctx).Info("Restored run times", "runs", state.Ended, "classes", len(state.Classes))
}

// Run writes the history until the context ends, if runs have ended since the last time.
func (s *Store) Run(ctx context.Context) {
	s.clock.AfterFunc(pause, func() {
		if ctx.Err() != nil {
			return
		}
		s.Save(ctx)
		s.Run(ctx)
	})
}

// Save writes the history if it was loaded, and runs have ended since the last time.
func (s *Store) Save(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.learner.count()
	if !s.loaded || changes == s.written {
		return
	}
	content, err := s.learner.encode()
	if err == nil {
		err = s.at.Write(ctx, content)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Writing run times", "configMap", klog.KRef(s.at.Namespace, s.at.Name))
		return
	}
	s.written = changes
}

// state is what is written: the history, and what was learned about forecasts of starts.
type state struct {
	forecast.State

	Starts forecast.StartsState `json:"starts,omitzero"`
}

// restore replaces what was learned.
func (l *Learner) restore(s state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history, l.starts = forecast.Restore(s.State), forecast.RestoreStarts(s.Starts)
}

// count returns how many runs were added to the history by this process.
func (l *Learner) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// encode returns as much of the history as mostBytes hold.
func (l *Learner) encode() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for most := forecast.MostKept; ; most /= 2 {
		content, err := statemap.Encode(state{l.history.State(most), l.starts.State()})
		if err != nil || len(content) <= mostBytes || most == 0 {
			return content, err
		}
	}
}
