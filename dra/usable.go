package dra

import (
	"context"
	"fmt"
	"math"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// deviceState is one device of a node as the necessary conditions see it.
type deviceState struct {
	device

	seen uint32
	use  use
	// pool is the index of the device's pool in the node's view, left the rest of its pool's counters.
	pool int
	left map[string]map[string]resource.Quantity
}

// devices returns the devices that the node sees, in the allocator's order. Pools that are not complete give none.
func (f *Fitter) devices(v *view, l *Ledger, through *lens) []deviceState {
	var all []deviceState
	for i, p := range v.parts {
		if p.partial {
			continue
		}
		h := l.holding(p.id)
		var left map[string]map[string]resource.Quantity
		if len(p.counters) > 0 {
			left = p.remaining(h)
		}
		seen := f.seen(p.pool, through)
		p.each(func(d int) {
			all = append(all, deviceState{p.devices[d], seen[d+1], h.of(p.devices[d].Name), i, left})
		})
	}
	return all
}

// hidden returns the devices that the node does not reach and the allocator asks selectors about all the same.
func (f *Fitter) hidden(v *view, through *lens) []deviceState {
	var all []deviceState
	for _, p := range v.parts {
		seen := f.seen(p.pool, through)
		for _, g := range p.some {
			if !g.reached {
				all = append(all, deviceState{device: p.devices[g.index], seen: seen[g.index+1]})
			}
		}
	}
	return all
}

// selects reports whether the selectors of a kind select the device. The result depends only on the device's number
// through the demand's lens, so it is computed once.
func (t *terms) selects(ctx context.Context, kind int, s deviceState) verdict {
	at := selection{kind, s.seen}
	if v, known := t.selected[at]; known {
		return v
	}
	v := verdict{yes: true}
	for _, sel := range t.kinds[kind] {
		yes, _, err := sel.compiled.DeviceMatches(ctx, cel.Device{
			Driver: s.driver, AllowMultipleAllocations: s.AllowMultipleAllocations,
			Attributes: s.Attributes, Capacity: s.Capacity,
		})
		if ctx.Err() != nil {
			return verdict{yes: true} // nothing is known; the allocator will end at once too
		}
		if err != nil {
			v = verdict{
				yes:   true,
				fault: fmt.Sprintf("the selector %q of %s fails: %s", sel.text, sel.of, oneLine(err.Error())),
			}
			break
		}
		if !yes {
			v.yes = false
			break
		}
	}
	t.selected[at] = v
	return v
}

// usable reports whether the device, which the alternative selects, could be given to it now, considering that device
// alone.
func (f *Fitter) usable(o alternative, s deviceState) bool {
	if !o.admin && s.use.taken {
		return false
	}
	return !f.repelled(o, s) && f.roomy(o, s) && f.charged(s)
}

// repelled reports whether the alternative does not tolerate a taint of the device.
func (f *Fitter) repelled(o alternative, s deviceState) bool {
	if !f.features.DeviceTaints {
		return false
	}
	for _, taint := range s.Taints {
		if taint.Effect != resourcev1.DeviceTaintEffectNoExecute &&
			taint.Effect != resourcev1.DeviceTaintEffectNoSchedule {
			continue
		}
		tolerated := false
		for _, t := range o.tolerations {
			tolerated = tolerated || resourceclaim.ToleratesTaint(t, taint)
		}
		if !tolerated {
			return true
		}
	}
	return false
}

// offers reports whether the device's capacities could serve the alternative if none were used, and whether that is
// certain: only the allocator knows the value to which a policy rounds a request up.
func (f *Fitter) offers(o alternative, s deviceState) (could, sure bool) {
	if !f.features.ConsumableCapacity {
		return true, true
	}
	s.use = use{}
	sure = true
	if o.capacity != nil {
		for name := range o.capacity.Requests {
			sure = sure && s.Capacity[name].RequestPolicy == nil
		}
	}
	could = f.roomy(o, s)
	return could, could && sure
}

// roomy reports whether the device has the capacities that the alternative names, and enough of them left.
func (f *Fitter) roomy(o alternative, s deviceState) bool {
	if !f.features.ConsumableCapacity {
		return true
	}
	if o.capacity != nil {
		for name := range o.capacity.Requests {
			if _, found := s.Capacity[name]; !found {
				return false
			}
		}
	}
	return f.shares(s, o) > 0
}

// shares returns an upper bound of the number of shares of the device that requests of these alternatives could have
// together, 1 if it is not shareable.
func (f *Fitter) shares(s deviceState, alternatives ...alternative) int {
	most := unlimited
	for name, c := range s.Capacity {
		left := c.Value.AsApproximateFloat64()
		if q, used := s.use.consumed[name]; used {
			left -= q.AsApproximateFloat64()
		}
		least := math.Inf(1)
		for _, o := range alternatives {
			least = min(least, leastConsumed(o, name, c))
		}
		if least > 0 {
			most = min(most, atMost(left, least))
		}
	}
	if !f.features.ConsumableCapacity || !s.shareable() {
		return min(most, 1)
	}
	return most
}

// leastConsumed returns a lower bound of the alternative's use of a capacity. A policy can only round it up.
func leastConsumed(o alternative, name resourcev1.QualifiedName, c resourcev1.DeviceCapacity) float64 {
	if o.capacity != nil {
		if q, named := o.capacity.Requests[name]; named {
			return q.AsApproximateFloat64()
		}
	}
	if c.RequestPolicy != nil && c.RequestPolicy.Default != nil {
		return c.RequestPolicy.Default.AsApproximateFloat64()
	}
	return c.Value.AsApproximateFloat64()
}

// atMost returns the number of times that the part fits into the whole, with a margin for rounding: the bound may be
// too high, never too low.
func atMost(whole, part float64) int {
	if whole < 0 {
		return 0
	}
	return int(math.Min(math.Floor(whole/part*(1+1e-9)+1e-9), unlimited))
}

// charged reports whether the counters that the device draws on are there. A device that is in use in shares has drawn
// on them before.
func (f *Fitter) charged(s deviceState) bool {
	if f.features.ConsumableCapacity && s.shareable() && !s.use.idle() {
		return true
	}
	for _, set := range s.ConsumesCounters {
		for name, c := range set.Counters {
			if q, found := s.left[set.CounterSet][name]; found && q.Cmp(c.Value) < 0 {
				return false
			}
		}
	}
	return true
}
