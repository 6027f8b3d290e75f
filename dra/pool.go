package dra

import (
	"cmp"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// PoolID names a resource pool: pools of different drivers may have the same name.
type PoolID struct{ Driver, Name string }

// String returns driver/pool.
func (p PoolID) String() string { return p.Driver + "/" + p.Name }

// comparePools is the order in which the allocator visits pools.
func comparePools(a, b PoolID) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
}

// pool is the newest generation of a resource pool. It never changes: a change of its slices makes another one.
type pool struct {
	id PoolID
	// slices are those of the newest generation, in order of their names.
	slices  []*resourcev1.ResourceSlice
	devices []device
	// nodes are those that slices name. Wide pools have slices for nodes that they do not name.
	nodes []string
	wide  bool
	// partial pools lack slices, or do not agree how many they have. They give nothing.
	partial  bool
	counters map[string]map[string]resourcev1.Counter
	problem  string
	// names are those of the devices' attributes and capacities, without their domains.
	names map[string]bool
	// seen holds the devices as lenses see them, by the names that a lens reads of these.
	seen map[string][]uint32
}

// device is one device of a pool and the nodes that it reaches.
type device struct {
	*resourcev1.Device

	driver string
	reach  *reach
	// slice is the index of its slice; own is set if each device of the slice names the nodes that it reaches.
	slice int
	own   bool
}

// shareable reports whether several claims can have shares of the device at the same time.
func (d device) shareable() bool {
	return d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
}

// newPool makes a pool of all its slices, of any generation. There is at least one.
func newPool(id PoolID, all []*resourcev1.ResourceSlice) *pool {
	newest := slices.MaxFunc(all, func(a, b *resourcev1.ResourceSlice) int {
		return cmp.Compare(a.Spec.Pool.Generation, b.Spec.Pool.Generation)
	}).Spec.Pool.Generation
	p := &pool{
		id: id, names: map[string]bool{}, seen: map[string][]uint32{},
		counters: map[string]map[string]resourcev1.Counter{},
	}
	for _, s := range all {
		if s.Spec.Pool.Generation == newest {
			p.slices = append(p.slices, s)
		}
	}
	slices.SortFunc(p.slices, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	for i, s := range p.slices {
		p.add(i, s)
	}
	if p.problem = p.miscounted(len(all) - len(p.slices)); p.problem != "" {
		p.partial = true
		p.distrust()
		return p
	}
	p.problem = cmp.Or(p.repeated(), p.unfounded())
	return p
}

// add adds the devices that a slice of the newest generation publishes.
func (p *pool) add(index int, s *resourcev1.ResourceSlice) {
	whole := sliceReach(s)
	if whole != nil && whole.name != "" {
		p.nodes = append(p.nodes, whole.name)
	} else {
		p.wide = true
	}
	for i := range s.Spec.Devices {
		d := device{Device: &s.Spec.Devices[i], driver: p.id.Driver, reach: whole, slice: index, own: whole == nil}
		if d.own {
			d.reach = deviceReach(d.Device)
		}
		p.devices = append(p.devices, d)
		for name := range d.Attributes {
			p.names[identifier(string(name))] = true
		}
		for name := range d.Capacity {
			p.names[identifier(string(name))] = true
		}
	}
	for _, set := range s.Spec.SharedCounters {
		p.counters[set.Name] = set.Counters
	}
}

// distrust raises the slices' count, so that the allocator takes the pool for incomplete. Of slices that disagree the
// allocator would believe whichever it is given first.
func (p *pool) distrust() {
	for i, s := range p.slices {
		said := *s
		said.Spec.Pool.ResourceSliceCount = int64(len(p.slices)) + 1
		p.slices[i] = &said
	}
}

// miscounted returns the fault of the number of slices, "" for none.
func (p *pool) miscounted(obsolete int) string {
	first := p.slices[0].Spec.Pool
	for _, s := range p.slices[1:] {
		if s.Spec.Pool.ResourceSliceCount != first.ResourceSliceCount {
			return fmt.Sprintf(
				"generation %d has slices that disagree about their number: %s says %d, %s says %d",
				first.Generation,
				p.slices[0].Name,
				first.ResourceSliceCount,
				s.Name,
				s.Spec.Pool.ResourceSliceCount,
			)
		}
	}
	switch have := int64(len(p.slices)); {
	case have > first.ResourceSliceCount:
		return fmt.Sprintf("generation %d has %d slices and says that it has %d",
			first.Generation, have, first.ResourceSliceCount)
	case have < first.ResourceSliceCount && obsolete > 0:
		return fmt.Sprintf(
			"its generations disagree: of generation %d, %d of %d slices are there, %s of older ones remain",
			first.Generation,
			have,
			first.ResourceSliceCount,
			count(obsolete, "slice"),
		)
	case have < first.ResourceSliceCount:
		return fmt.Sprintf(
			"of generation %d, %d of %d slices are there",
			first.Generation,
			have,
			first.ResourceSliceCount,
		)
	}
	return ""
}

// repeated names a device or a counter set that is there twice.
func (p *pool) repeated() string {
	seen := map[string]bool{}
	for _, d := range p.devices {
		if seen[d.Name] {
			return fmt.Sprintf("device %s is there twice", d.Name)
		}
		seen[d.Name] = true
	}
	sets := map[string]bool{}
	for _, s := range p.slices {
		for _, set := range s.Spec.SharedCounters {
			if sets[set.Name] {
				return fmt.Sprintf("counter set %s is there twice", set.Name)
			}
			sets[set.Name] = true
		}
	}
	return ""
}

// unfounded names a device that draws on counters that are not there.
func (p *pool) unfounded() string {
	for _, d := range p.devices {
		for _, use := range d.ConsumesCounters {
			for _, counter := range sortedKeys(use.Counters) {
				if _, found := p.counters[use.CounterSet][counter]; !found {
					return fmt.Sprintf("device %s draws on counter %s of set %s, which is not there",
						d.Name, counter, use.CounterSet)
				}
			}
		}
	}
	return ""
}

// Problem is a pool that cannot be used as it is published.
type Problem struct {
	Pool PoolID
	// Nodes are those that the pool's slices name, in order; none if it is for nodes that they select.
	Nodes []string
	// What is the problem, without the pool's name.
	What string
}

// String returns one line.
func (p Problem) String() string { return fmt.Sprintf("resource pool %s: %s", p.Pool, p.What) }
