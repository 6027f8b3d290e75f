package schedulertest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// versionedTracker gives every write its resource version, as an API server does. Without it the scheduler takes an
// update of a waiting pod, such as its nomination, for one that it has processed already.
type versionedTracker struct {
	clienttesting.ObjectTracker

	last atomic.Int64
	// mu protects a version between its comparison and the write.
	mu sync.Mutex
}

func (v *versionedTracker) stamp(o runtime.Object) (runtime.Object, error) {
	stamped := o.DeepCopyObject()
	m, err := meta.Accessor(stamped)
	if err != nil {
		return nil, fmt.Errorf("reading metadata of a %T: %w", o, err)
	}
	m.SetResourceVersion(strconv.FormatInt(v.last.Add(1)+1_000_000, 10))
	return stamped, nil
}

// Create stores an object with a new resource version.
func (v *versionedTracker) Create(
	r schema.GroupVersionResource, o runtime.Object, ns string, opts ...metav1.CreateOptions,
) error {
	stamped, err := v.stamp(o)
	if err != nil {
		return err
	}
	return stored(v.ObjectTracker.Create(r, stamped, ns, opts...))
}

// Update replaces an object and gives it a new resource version. A write that names another version than the stored one
// is refused.
func (v *versionedTracker) Update(
	r schema.GroupVersionResource, o runtime.Object, ns string, opts ...metav1.UpdateOptions,
) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.current(r, o, ns); err != nil {
		return err
	}
	stamped, err := v.stamp(o)
	if err != nil {
		return err
	}
	return stored(v.ObjectTracker.Update(r, stamped, ns, opts...))
}

// current returns a conflict if an object has another version than the one that is stored.
func (v *versionedTracker) current(r schema.GroupVersionResource, o runtime.Object, ns string) error {
	mine, err := meta.Accessor(o)
	if err != nil {
		return fmt.Errorf("reading metadata of a %T: %w", o, err)
	}
	if mine.GetResourceVersion() == "" {
		return nil
	}
	have, err := v.Get(r, ns, mine.GetName())
	if err != nil {
		return stored(err)
	}
	theirs, err := meta.Accessor(have)
	if err != nil {
		return fmt.Errorf("reading metadata of a %T: %w", have, err)
	}
	if theirs.GetResourceVersion() == mine.GetResourceVersion() {
		return nil
	}
	return stored(apierrors.NewConflict(r.GroupResource(), mine.GetName(), errors.New("it has been modified")))
}

// Patch stores a patched object with a new resource version.
func (v *versionedTracker) Patch(
	r schema.GroupVersionResource, o runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	stamped, err := v.stamp(o)
	if err != nil {
		return err
	}
	return stored(v.ObjectTracker.Patch(r, stamped, ns, opts...))
}

// stored wraps an error of the store. Callers find the API error with apierrors.
func stored(err error) error {
	if err != nil {
		return fmt.Errorf("fake API server: %w", err)
	}
	return nil
}

// KeepTerminating makes deleted pods stay, with a deletion timestamp, until RemovePods: an evicted pod has its grace
// period.
func (c *Cluster) KeepTerminating() {
	store := &versionedTracker{ObjectTracker: c.Tracker()}
	store.last.Store(1 << 40)
	c.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		deletion, ok := action.(clienttesting.DeleteAction)
		if !ok {
			return false, nil, nil
		}
		object, err := c.Tracker().Get(podResource(), Namespace, deletion.GetName())
		if err != nil {
			return true, nil, fmt.Errorf("deleting %s: %w", deletion.GetName(), err)
		}
		pod, _ := object.DeepCopyObject().(*corev1.Pod)
		now := metav1.Now()
		pod.DeletionTimestamp = &now
		return true, nil, store.Update(podResource(), pod, Namespace)
	})
}
