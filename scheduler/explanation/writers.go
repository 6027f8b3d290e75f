package explanation

import (
	"context"
	"sync"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// Writers has one writer for each profile of a scheduler. The reports of one profile's plugins about a gang have to be
// written in their order, or the group of a gang that runs would still report that members are missing.
type Writers struct {
	timing timing.Timing

	mu sync.Mutex
	of map[string]*Writer
}

// NewWriters has no writer yet.
func NewWriters(t timing.Timing) *Writers {
	return &Writers{timing: t, of: make(map[string]*Writer)}
}

// Of returns the writer of the handle's profile. The first caller makes it, and it works until that caller's context
// ends.
func (w *Writers) Of(ctx context.Context, handle fwk.Handle) *Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	profile := handle.ProfileName()
	if w.of[profile] == nil {
		w.of[profile] = NewWriter(ctx, handle.ClientSet(), handle.EventRecorder(), w.timing)
	}
	return w.of[profile]
}
