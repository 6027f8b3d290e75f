package dra

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// slack is the amount by which sums of counters may exceed the available ones: they are computed in floating point, and
// the bound may be too high, never too low.
const slack = 1e-9

// setOf names the first counter set that the device draws on, if it draws on one whenever it is given to a pod. A
// device that is shared draws on it once for all.
func (at *trial) setOf(s int) (setName, bool) {
	d := &at.devices[s]
	if len(d.ConsumesCounters) == 0 || d.shareable() {
		return setName{}, false
	}
	return setName{d.pool, d.ConsumesCounters[0].CounterSet}, true
}

// setName is a counter set of the pool with that index.
type setName struct {
	pool int
	name string
}

// setHolds returns an upper bound of the number of devices of the counter set that can be allocated at once: for each
// counter, the number of the cheapest that it pays for. Counters of 1 are also taken together, since slices of memory
// are counted so, each by a counter of its own.
func (at *trial) setHolds(set setName) int {
	var members []int
	for s := range at.devices {
		if of, draws := at.setOf(s); draws && of == set && at.needed(s) {
			members = append(members, s)
		}
	}
	costs := map[string][]float64{}
	left := map[string]float64{}
	for _, s := range members {
		for name, q := range at.devices[s].left[set.name] {
			if _, known := left[name]; !known {
				left[name] = q.AsApproximateFloat64()
			}
			costs[name] = append(costs[name], counterValue(at.devices[s], 0, name))
		}
	}
	most := len(members)
	for name, c := range costs {
		most = min(most, paid(c, left[name]))
	}
	return min(most, at.units(members))
}

// units returns the number of the devices that the counters of 1 pay for together.
func (at *trial) units(members []int) int {
	costs := make([]float64, len(members))
	sum := 0.0
	for i, s := range members {
		d := at.devices[s]
		set := d.ConsumesCounters[0].CounterSet
		sum = 0
		for name, q := range d.left[set] {
			if q.CmpInt64(1) == 0 {
				sum++
				costs[i] += counterValue(d, 0, name)
			}
		}
	}
	return paid(costs, sum)
}

// counterValue returns the amount that the device draws from a counter of the set with that index, 0 if none.
func counterValue(d deviceState, set int, name string) float64 {
	c := d.ConsumesCounters[set].Counters[name]
	return c.Value.AsApproximateFloat64()
}

// paid returns the number of the cheapest that can be paid for.
func paid(costs []float64, purse float64) int {
	costs = slices.Sorted(slices.Values(costs))
	sum := 0.0
	for i, c := range costs {
		if sum += c; sum > math.Max(purse, 0)*(1+slack)+slack {
			return i
		}
	}
	return len(costs)
}

// needed reports whether some request that takes devices could use the device.
func (at *trial) needed(s int) bool {
	last := ""
	return slices.ContainsFunc(at.needs, func(n need) bool {
		if n.admin || n.key == last {
			return false
		}
		last = n.key
		_, found := slices.BinarySearch(n.from, s)
		return found
	})
}

// counters adds up the least that the requests draw from all counters of one name together.
func (at *trial) counters() string {
	left := map[string]float64{}
	pools := map[int]bool{}
	for _, s := range at.devices {
		if pools[s.pool] {
			continue
		}
		pools[s.pool] = true
		for _, set := range s.left {
			for name, q := range set {
				left[name] += math.Max(q.AsApproximateFloat64(), 0)
			}
		}
	}
	groups := at.alike(at.needs)
	for _, name := range sortedKeys(left) {
		least := 0.0
		for _, group := range groups {
			least += float64(group.least()) * at.cheapest(group.needs[0], name)
		}
		if least > left[name]*(1+slack)+slack {
			return fmt.Sprintf("the requests draw at least %s from counters %s: %s is left",
				amount(least), name, amount(left[name]))
		}
	}
	return ""
}

// amount writes a sum of counters; sums of memory in its units.
func amount(sum float64) string {
	format := resource.DecimalSI
	if sum >= 1<<20 {
		format = resource.BinarySI
	}
	return resource.NewQuantity(int64(math.Round(sum)), format).String()
}

// cheapest is the least that one device for the need draws from counters of that name. Administration draws too.
func (at *trial) cheapest(n need, name string) float64 {
	least := math.Inf(1)
	for _, s := range n.from {
		d := at.devices[s]
		if d.shareable() {
			return 0
		}
		sum := 0.0
		for i := range d.ConsumesCounters {
			sum += counterValue(d, i, name)
		}
		if least = math.Min(least, sum); least == 0 {
			return 0
		}
	}
	return least
}
