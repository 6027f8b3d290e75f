// Package reservation keeps, for one scheduler, the place of the gang that is first in the queue and has no room yet. Without
// it a large gang never starts while small ones keep coming: each takes what just became free.
package reservation

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Head is the first gang of the queue.
type Head struct {
	Key   types.NamespacedName
	Group *schedulingv1beta1.PodGroup
	// Waiting are its members without nodes, Needed how many of them have to start together.
	Waiting []*corev1.Pod
	Needed  int
	// Rooms is what is reserved for it, by node.
	Rooms map[string]corev1.ResourceList
	// At is when it can have them, in seconds since 1970, as far as is known now.
	At int64
	// Expected is when it should have them, as was known when it became the first; zero if nobody knew.
	Expected time.Time
}

func orderOf(group *schedulingv1beta1.PodGroup) decision.Order {
	return snapshot.OrderOf(group, ptr.Deref(group.Spec.Priority, 0))
}

// Book keeps one reservation. It is safe for concurrent use.
type Book struct {
	mu   sync.RWMutex
	head *Head
	// freed are called when there is none any more: others may have waited for that.
	freed []func()
}

// NewBook makes an empty book, which tells when a place is given back.
func NewBook(freed func()) *Book {
	b := &Book{}
	if freed != nil {
		b.freed = append(b.freed, freed)
	}
	return b
}

// OnFreed has one more be told when a place is given back. It is for the time before the book is used.
func (b *Book) OnFreed(freed func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freed = append(b.freed, freed)
}

// Head is the reservation that stands; nil for none.
func (b *Book) Head() *Head {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.head
}

// Before is the reservation that a gang has to respect: that of another gang which is before it in the queue. Nil for none.
func (b *Book) Before(group *schedulingv1beta1.PodGroup) *Head {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.head == nil || b.head.Group.UID == group.UID || orderOf(b.head.Group).Compare(orderOf(group)) >= 0 {
		return nil
	}
	return b.head
}

// Reserve writes a reservation down, instead of one of a gang that comes later. Of one gang the first expectation stays: it is what
// people were told.
func (b *Book) Reserve(head Head) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.head != nil && b.head.Group.UID == head.Group.UID {
		head.Expected = b.head.Expected
	}
	if b.head == nil || b.head.Group.UID == head.Group.UID || orderOf(head.Group).Compare(orderOf(b.head.Group)) < 0 {
		b.head = &head
	}
}

// Drop takes the gang's reservation back, if it has it: it starts, is gone, or will never fit. It returns what was kept; nil for
// nothing.
func (b *Book) Drop(gang types.UID) *Head {
	b.mu.Lock()
	var kept *Head
	var tell []func()
	if b.head != nil && b.head.Group.UID == gang {
		kept, tell = b.head, b.freed
		b.head = nil
	}
	b.mu.Unlock()
	for _, freed := range tell {
		freed()
	}
	return kept
}

// On is what a pod that is in no gang has to leave free on a node; nil for nothing. It may pass if it is before the head.
func (b *Book) On(node string, pod *corev1.Pod) corev1.ResourceList {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.head == nil {
		return nil
	}
	own := snapshot.OrderOf(pod, corev1helpers.PodPriority(pod))
	if own.Compare(orderOf(b.head.Group)) < 0 {
		return nil
	}
	return b.head.Rooms[node]
}
