// Package lease lets a controller lead only while it holds two leases: Lockstep's own, for which its replicas compete,
// and the one of Kubeflow Trainer, which it has taken over.
package lease

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Trainer is the name of Kubeflow Trainer's lease, of 2.2 and 2.3.
const Trainer = "trainer.kubeflow.org"

// Both is one lock on two leases. An elector acquires it only when neither lease has another holder that renews it, and
// holds both. So it does not lead beside a holder of either: a Kubeflow Trainer, or a replica of Lockstep that was
// started without the other lease.
//
// It is written in the order Own, Other: if the second write fails, a Lockstep that does not lead blocks no Kubeflow
// Trainer.
type Both struct {
	Own, Other resourcelock.Interface

	// absent is set, for Own and Other, if the lease did not exist when it was last read.
	absent [2]bool
}

var _ resourcelock.Interface = (*Both)(nil)

func (b *Both) locks() [2]resourcelock.Interface { return [2]resourcelock.Interface{b.Own, b.Other} }

// Get returns the record of the lease that another one holds; if both are ours or free, that of Own. The bytes change
// with each renewal of either, so that an elector waits for both holders. It is NotFound if neither lease exists.
func (b *Both) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	var records []*resourcelock.LeaderElectionRecord
	var raw [][]byte
	var missing error
	for i, lock := range b.locks() {
		record, text, err := lock.Get(ctx)
		b.absent[i] = apierrors.IsNotFound(err)
		switch {
		case b.absent[i]:
			missing = err
		case err != nil:
			return nil, nil, fmt.Errorf("reading lease %s: %w", lock.Describe(), err)
		default:
			records, raw = append(records, record), append(raw, text)
		}
	}
	if len(records) == 0 {
		return nil, nil, missing
	}
	return b.merged(records), bytes.Join(raw, []byte("\n")), nil
}

// merged returns one record of two leases. It lasts as long as the longer one does.
func (b *Both) merged(records []*resourcelock.LeaderElectionRecord) *resourcelock.LeaderElectionRecord {
	merged, held := *records[0], 0
	duration := 0
	for _, record := range records {
		switch record.HolderIdentity {
		case b.Identity():
			held++
		case "":
		default:
			merged = *record
		}
		duration = max(duration, record.LeaseDurationSeconds)
	}
	merged.LeaseDurationSeconds = duration
	if held < len(b.locks()) && merged.HolderIdentity == b.Identity() {
		merged.HolderIdentity = "" // one lease alone is not enough
	}
	return &merged
}

// Create creates both leases. One that was created meanwhile is an error.
func (b *Both) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	b.absent = [2]bool{true, true}
	return b.Update(ctx, record)
}

// Update writes both leases, and creates one that did not exist when it was read.
func (b *Both) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	for i, lock := range b.locks() {
		write := lock.Update
		if b.absent[i] {
			write = lock.Create
		}
		if err := write(ctx, record); err != nil {
			return fmt.Errorf("writing lease %s: %w", lock.Describe(), err)
		}
		b.absent[i] = false
	}
	return nil
}

// RecordEvent records an Event about the own lease.
func (b *Both) RecordEvent(text string) { b.Own.RecordEvent(text) }

// Identity returns the identity of the elector, which is the same for both leases.
func (b *Both) Identity() string { return b.Own.Identity() }

// Describe names both leases.
func (b *Both) Describe() string { return b.Own.Describe() + " and " + b.Other.Describe() }
