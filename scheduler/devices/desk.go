package devices

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// desk writes to claims for the members of gangs that share them. Members are bound side by side, and the in-tree
// plugin has each write its choice with the version that it saw, so that all writes but the first would be refused, and
// the gang with them. Here one member writes, and changes that arrive meanwhile are written with the next version, for
// all at once.
type desk struct {
	// chosen returns the devices that the scheduler has chosen for a claim and not written yet; nil for none.
	chosen func(types.UID) *resourcev1.AllocationResult
	clock  clock.WithDelayedExecution
	// ends is closed when the scheduler ends.
	ends <-chan struct{}

	mu     sync.Mutex
	claims map[types.UID]*counter
}

// counter holds the changes of one claim that wait while another one is being written.
type counter struct{ waiting []*change }

// change is a member's request to a claim: to keep the claim while it is allocated, or to reserve devices for a
// consumer.
type change struct {
	// seen is the claim as the member knows it, without the change.
	seen *resourcev1.ResourceClaim
	// consumer and devices are nil for a change that adds the finalizer.
	consumer *resourcev1.ResourceClaimConsumerReference
	devices  *resourcev1.AllocationResult

	done    chan struct{}
	written *resourcev1.ResourceClaim
	err     error
}

// answer returns the written claim as the member gets it. A member that only added the finalizer puts its devices over
// those of the claim; if there are some by now, it gets the version that it knew, and its reservation is compared with
// them.
func (c *change) answer(written *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	if c.consumer != nil || written.Status.Allocation == nil {
		return written.DeepCopy()
	}
	known := c.seen.DeepCopy()
	known.Finalizers = append(known.Finalizers, resourcev1.Finalizer)
	return known
}

// submit returns the claim with the change, as it was written.
func (d *desk) submit(
	ctx context.Context, client resourceclient.ResourceClaimInterface, wanted *change,
) (*resourcev1.ResourceClaim, error) {
	wanted.done = make(chan struct{})
	uid := wanted.seen.UID
	d.mu.Lock()
	if at := d.claims[uid]; at != nil {
		at.waiting = append(at.waiting, wanted)
		d.mu.Unlock()
		<-wanted.done
		return wanted.written, wanted.err
	}
	at := &counter{waiting: []*change{wanted}}
	if d.claims == nil {
		d.claims = make(map[types.UID]*counter)
	}
	d.claims[uid] = at
	d.mu.Unlock()
	d.serve(context.WithoutCancel(ctx), client, uid, at) // others than this one's pod depend on it
	return wanted.written, wanted.err
}

// serve writes until nothing waits.
func (d *desk) serve(
	ctx context.Context, client resourceclient.ResourceClaimInterface, uid types.UID, at *counter,
) {
	var last version
	for {
		d.mu.Lock()
		batch := at.waiting
		at.waiting = nil
		if len(batch) == 0 {
			delete(d.claims, uid)
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		last = d.answer(ctx, client, last, batch)
	}
}

// answer writes the changes and reports the result to the members that wait. It returns the version that was written
// last.
func (d *desk) answer(
	ctx context.Context, client resourceclient.ResourceClaimInterface, last version, batch []*change,
) version {
	written, err := d.write(ctx, client, last, batch)
	if apierrors.IsInvalid(err) && len(batch) > 1 { // one of them is too many for the claim
		for i := range batch {
			last = d.answer(ctx, client, last, batch[i:i+1])
		}
		return last
	}
	for _, one := range batch {
		if one.err = errors.Join(one.err, err); one.err == nil {
			one.written = one.answer(written)
		}
		close(one.done)
	}
	if err != nil {
		return version{}
	}
	return version{written, true}
}

// version is a known version of a claim. One that is not sure to be the newest may have been written since, past the
// desk.
type version struct {
	claim *resourcev1.ResourceClaim
	sure  bool
}

// A write without an answer may have taken effect. The desk reads the claim again after a pause, which doubles, and
// repeats the write. It gives up after mostDoubts attempts whose read succeeded: a webhook may be failing.
const (
	firstDoubt   = 50 * time.Millisecond
	longestDoubt = 5 * time.Second
	mostDoubts   = 10
)

var errUnread = errors.New("reading the claim")

// write makes the changes, on the claim as it was written last, or, without that, as the first member saw it. If that
// is not the newest version, it is read and they are made on that. Changes that cannot be made any more get their
// error.
//
// The in-tree plugin releases the devices on an error, and may allocate them to the next pod before its caches show
// that the write took effect. So write returns an error if the API server has refused the change, and one that leaves
// doubt only after mostDoubts attempts or at the scheduler's end.
func (d *desk) write(
	ctx context.Context, client resourceclient.ResourceClaimInterface, last version, batch []*change,
) (*resourcev1.ResourceClaim, error) {
	if last.claim == nil {
		last = version{batch[0].seen, false}
	}
	doubts := 0
	for pause := firstDoubt; ; pause = min(2*pause, longestDoubt) {
		written, err := d.try(ctx, client, last, batch)
		if !errors.Is(err, errUnread) {
			doubts++
		}
		if !inDoubt(err) || doubts == mostDoubts {
			return written, err
		}
		klog.FromContext(ctx).V(2).Info("It is not known whether a write succeeded; the claim is read again",
			"claim", klog.KObj(batch[0].seen), "err", err)
		last = version{}
		select {
		case <-d.ends:
			return nil, err
		case <-d.clock.After(pause):
		}
	}
}

// inDoubt reports whether a write may have taken effect in spite of an error: a write that the API server itself
// refuses has not.
func inDoubt(err error) bool {
	if err == nil {
		return false
	}
	status := apierrors.APIStatus(nil)
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// try applies the changes to the last known version, and reads the claim if there is none.
func (d *desk) try(
	ctx context.Context, client resourceclient.ResourceClaimInterface, last version, batch []*change,
) (*resourcev1.ResourceClaim, error) {
	var written *resourcev1.ResourceClaim
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if last.claim == nil {
			read, err := client.Get(ctx, batch[0].seen.Name, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("%w: %w", errUnread, err)
			}
			if read.UID != batch[0].seen.UID { // another one of its name
				return apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), read.Name)
			}
			last = version{read, true}
		}
		var err error
		written, err = d.apply(ctx, client, last, batch)
		last = version{} // after a conflict
		return err
	})
	return written, err //nolint:wrapcheck // apply and the above wrap theirs
}

// apply makes the changes on one version of the claim. Later writes of others are not overwritten: the API server
// compares versions.
func (d *desk) apply(
	ctx context.Context, client resourceclient.ResourceClaimInterface, base version, batch []*change,
) (*resourcev1.ResourceClaim, error) {
	protected, err := protect(ctx, client, base, batch)
	if err != nil {
		return nil, err
	}
	claim, asked, changed := protected.claim.DeepCopy(), false, false
	for _, one := range batch {
		if one.err = nil; one.consumer == nil {
			continue
		}
		if one.err = d.admit(claim, one); one.err == nil {
			asked, changed = true, reserve(claim, one) || changed
		}
	}
	if !asked || !changed && protected.sure { // only a write shows that a version is the newest one
		return claim, nil
	}
	written, err := client.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("writing the claim's devices and reservations: %w", err)
	}
	return written, nil
}

// protect adds the finalizer if one of the changes is that, and the claim does not have it.
func protect(
	ctx context.Context, client resourceclient.ResourceClaimInterface, base version, batch []*change,
) (version, error) {
	if slices.Contains(base.claim.Finalizers, resourcev1.Finalizer) ||
		!slices.ContainsFunc(batch, func(one *change) bool { return one.consumer == nil }) {
		return base, nil
	}
	claim := base.claim.DeepCopy()
	claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
	written, err := client.Update(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return version{}, fmt.Errorf("adding the finalizer: %w", err)
	}
	return version{written, true}, nil
}

// admit returns a conflict if the member's devices are not those of the claim, or were taken from it since the member
// was given them.
func (d *desk) admit(claim *resourcev1.ResourceClaim, one *change) error {
	have := claim.Status.Allocation
	if have == nil {
		have = d.chosen(claim.UID)
	}
	if have != nil && sameDevices(have, one.devices) {
		return nil
	}
	//nolint:wrapcheck // as the API server would say it
	return apierrors.NewConflict(resourcev1.Resource("resourceclaims"), claim.Name, errors.New("it has other devices"))
}

// reserve reports whether the claim was changed.
func reserve(claim *resourcev1.ResourceClaim, one *change) bool {
	changed := claim.Status.Allocation == nil
	if changed {
		claim.Status.Allocation = one.devices.DeepCopy()
	}
	if !slices.Contains(claim.Status.ReservedFor, *one.consumer) {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, *one.consumer)
		changed = true
	}
	return changed
}

// sameDevices compares allocations but for when they were made, which each member notes for itself.
func sameDevices(a, b *resourcev1.AllocationResult) bool {
	left, right := *a, *b
	left.AllocationTimestamp, right.AllocationTimestamp = nil, nil
	return apiequality.Semantic.DeepEqual(left, right)
}
