package statemap

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// Durable is state that survives its scheduler.
type Durable interface {
	// Changes counts the changes in this process.
	Changes() int
	// Ages reports whether the state also changes with time.
	Ages() bool
	// Encode returns the state as Encode of this package does.
	Encode() ([]byte, error)
	// Decode replaces the state by one that was encoded, as JSON.
	Decode(content []byte) error
}

// Keeper reads the state of the last scheduler once, and writes it for the next one.
type Keeper struct {
	At Map
	Of Durable
	// What names the state in the log: "leases".
	What string
	// Pause is the shortest time between two writes. The next scheduler lacks the changes since the last one.
	Pause time.Duration
	// Age is the longest time between two writes of a state that ages.
	Age    time.Duration
	Timing timing.Timing

	mu      sync.Mutex
	loaded  bool
	written int
	since   time.Time
}

// Load restores the state of the last scheduler, once. A scheduler that stands by must not call it before it schedules:
// the state would be that of another time. A state that cannot be read is logged, and the scheduler starts without.
func (k *Keeper) Load(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.loaded {
		return
	}
	k.loaded = true
	logger := klog.FromContext(ctx).WithValues("state", k.What, "configMap", klog.KRef(k.At.Namespace, k.At.Name))
	var content json.RawMessage
	found, err := k.At.Read(ctx, &content)
	if err == nil && found {
		err = k.Of.Decode(content)
	}
	switch {
	case err != nil:
		logger.Error(err, "Reading the state of the last scheduler; starting without it")
	case found:
		logger.Info("Restored the state of the last scheduler", "bytes", len(content))
	}
}

// Run writes the state until the context ends, once it was loaded: soon after it has changed, and while it ages.
func (k *Keeper) Run(ctx context.Context) {
	k.Timing.AfterFunc(k.Pause, func() {
		if ctx.Err() != nil {
			return
		}
		k.Save(ctx)
		k.Run(ctx)
	})
}

// Save writes the state if it was loaded, and changed since it was written. A failed write is logged, and due again.
func (k *Keeper) Save(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changes := k.Of.Changes()
	aged := k.Of.Ages() && k.Timing.Clock.Since(k.since) >= k.Age
	if !k.loaded || changes == k.written && !aged {
		return
	}
	content, err := k.Of.Encode()
	if err == nil {
		err = k.At.Write(ctx, content)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Writing the state for the next scheduler",
			"state", k.What, "configMap", klog.KRef(k.At.Namespace, k.At.Name))
		return
	}
	k.written, k.since = changes, k.Timing.Clock.Now()
}
