package dra

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// holding holds the taken devices of one pool. It never changes; the nil holding is empty.
type holding struct {
	takings []taking
	// devices sums up the takings by device.
	devices map[string]use
}

// taking is a device, or a share of one, that a claim has.
type taking struct {
	claim    types.UID
	device   string
	shared   bool
	share    types.UID
	consumed map[resourcev1.QualifiedName]resource.Quantity
}

// use is the state of one device: taken whole, or in shares.
type use struct {
	taken    bool
	shares   int
	consumed map[resourcev1.QualifiedName]resource.Quantity
}

func (h *holding) with(more []taking) *holding {
	if h == nil {
		return newHolding(more)
	}
	return newHolding(slices.Concat(h.takings, more))
}

// without returns the holding after the claim's release, nil if nothing is left.
func (h *holding) without(claim types.UID) *holding {
	if h == nil {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(h.takings), func(t taking) bool { return t.claim == claim })
	if len(left) == 0 {
		return nil
	}
	return newHolding(left)
}

func newHolding(takings []taking) *holding {
	h := &holding{takings: takings, devices: make(map[string]use, len(takings))}
	for _, t := range takings {
		h.devices[t.device] = h.devices[t.device].plus(t)
	}
	return h
}

// plus returns the state with one more taking.
func (u use) plus(t taking) use {
	if !t.shared {
		u.taken = true
		return u
	}
	u.shares++
	consumed := make(map[resourcev1.QualifiedName]resource.Quantity, len(t.consumed))
	maps.Copy(consumed, u.consumed)
	for name, q := range t.consumed {
		sum := consumed[name].DeepCopy()
		sum.Add(q)
		consumed[name] = sum
	}
	u.consumed = consumed
	return u
}

// of returns the state of a device.
func (h *holding) of(device string) use {
	if h == nil {
		return use{}
	}
	return h.devices[device]
}

// idle reports whether the device is unused. A device that is in use in shares still has room for others, but its
// counters are spent.
func (u use) idle() bool { return !u.taken && u.shares == 0 }

// state returns the allocations from the pools that the node sees, in the allocator's form.
func (v *view) state(l *Ledger) structured.AllocatedState {
	s := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, p := range v.parts {
		h := l.holding(p.id)
		if h == nil {
			continue
		}
		for _, t := range h.takings {
			id := structured.MakeDeviceID(p.id.Driver, p.id.Name, t.device)
			if !t.shared {
				s.AllocatedDevices.Insert(id)
				continue
			}
			s.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, &t.share))
			if t.consumed != nil {
				s.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, t.consumed))
			}
		}
	}
	return s
}

// remaining returns the rest of the pool's counters, by set and counter. Devices that a node does not see count too.
func (p *pool) remaining(h *holding) map[string]map[string]resource.Quantity {
	left := make(map[string]map[string]resource.Quantity, len(p.counters))
	for set, counters := range p.counters {
		left[set] = make(map[string]resource.Quantity, len(counters))
		for name, c := range counters {
			left[set][name] = c.Value
		}
	}
	for _, d := range p.devices {
		if len(d.ConsumesCounters) == 0 || h.of(d.Name).idle() {
			continue
		}
		for _, spent := range d.ConsumesCounters {
			for name, c := range spent.Counters {
				if q, found := left[spent.CounterSet][name]; found {
					q = q.DeepCopy()
					q.Sub(c.Value)
					left[spent.CounterSet][name] = q
				}
			}
		}
	}
	return left
}
