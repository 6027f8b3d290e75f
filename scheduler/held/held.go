// Package held keeps room on nodes for members of running gangs that are still to come: an MPI launcher is made when its
// workers are ready, and must not find that somebody else took its place.
package held

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/lockstep-project/lockstep/scheduler/metrics"
)

// Slot is the place of one member.
type Slot struct {
	Node string
	Room corev1.ResourceList
}

// Slots is what one scheduler holds. It is safe for concurrent use.
type Slots struct {
	// any is how many slots there are: most clusters have none, and every filter asks.
	any atomic.Int64

	mu    sync.RWMutex
	gangs map[types.NamespacedName][]Slot
	// byNode are the same by node: every filter asks about one.
	byNode map[string]map[types.NamespacedName]corev1.ResourceList
}

// NewSlots holds nothing.
func NewSlots() *Slots {
	return &Slots{
		gangs:  make(map[types.NamespacedName][]Slot),
		byNode: make(map[string]map[types.NamespacedName]corev1.ResourceList),
	}
}

// Hold replaces what is held for the gang.
func (s *Slots) Hold(gang types.NamespacedName, slots []Slot) {
	if len(slots) == 0 && s.any.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.any.Add(int64(len(slots) - len(s.gangs[gang])))
	metrics.Held.Set(float64(n))
	for _, slot := range s.gangs[gang] {
		if delete(s.byNode[slot.Node], gang); len(s.byNode[slot.Node]) == 0 {
			delete(s.byNode, slot.Node)
		}
	}
	delete(s.gangs, gang)
	if len(slots) == 0 {
		return
	}
	s.gangs[gang] = slots
	for _, slot := range slots {
		if s.byNode[slot.Node] == nil {
			s.byNode[slot.Node] = make(map[types.NamespacedName]corev1.ResourceList, 1)
		}
		s.byNode[slot.Node][gang] = quota.Add(s.byNode[slot.Node][gang], slot.Room)
	}
}

// Release gives back what is held for the gang.
func (s *Slots) Release(gang types.NamespacedName) { s.Hold(gang, nil) }

// For reports whether anything is held for the gang.
func (s *Slots) For(gang types.NamespacedName) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.gangs[gang]) > 0
}

// FromOthers is what is held by node, nil for nothing, for gangs other than this one.
func (s *Slots) FromOthers(gang types.NamespacedName) map[string]corev1.ResourceList {
	if s.any.Load() == 0 {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make(map[string]corev1.ResourceList)
	for other, slots := range s.gangs {
		if other == gang {
			continue
		}
		for _, slot := range slots {
			out[slot.Node] = quota.Add(out[slot.Node], slot.Room)
		}
	}
	return out
}

// On is what is held on one node for gangs other than this one, nil for nothing.
func (s *Slots) On(node string, gang types.NamespacedName) corev1.ResourceList {
	if s.any.Load() == 0 {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out corev1.ResourceList
	for other, room := range s.byNode[node] {
		if other != gang {
			out = quota.Add(out, room)
		}
	}
	return out
}
