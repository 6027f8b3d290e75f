package lease

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Local is a lock in memory, for a controller without other replicas. It costs no API call.
type Local struct {
	record *resourcelock.LeaderElectionRecord
}

// Get returns the record; NotFound before the first write.
func (l *Local) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.record == nil {
		missing := schema.GroupResource{Resource: "leases"}
		return nil, nil, apierrors.NewNotFound(missing, l.Identity()) //nolint:wrapcheck // the elector looks at it
	}
	record := *l.record
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, nil, fmt.Errorf("printing a record: %w", err)
	}
	return &record, raw, nil
}

// Create stores the first record.
func (l *Local) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update stores the next record.
func (l *Local) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.record = &record
	return nil
}

// RecordEvent does nothing: no other replica reads Events about a lock in memory.
func (*Local) RecordEvent(string) {}

// Identity names the process.
func (*Local) Identity() string { return "local" }

// Describe names the lock.
func (*Local) Describe() string { return "a lock in memory" }
