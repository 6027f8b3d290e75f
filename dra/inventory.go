package dra

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Inventory holds the published ResourceSlices, by node. The objects that it is given must not be changed afterwards.
type Inventory struct {
	slices map[string]*resourcev1.ResourceSlice
	byPool map[PoolID]map[string]*resourcev1.ResourceSlice
	pools  map[PoolID]*pool
	wide   map[PoolID]*pool
	// named are the pools with slices for one node, by the node.
	named map[string]map[PoolID]bool
	nodes map[string]*corev1.Node
	// views are built on demand and dropped when something in them changes.
	views map[string]*view
}

// view holds the devices that one node sees. It never changes.
type view struct {
	node *corev1.Node
	// parts are in the order in which the allocator visits pools.
	parts []part
}

// part holds the devices of one pool that a node sees: all, or some.
type part struct {
	*pool

	whole bool
	some  []seenDevice
	// last is set if a device in a slice for the node has binding conditions: the allocator visits such pools after all
	// others.
	last bool
}

// seenDevice is a device in a node's view, by its index. A device that does not reach the node is included where the
// devices of a slice each have their own nodes, because the allocator evaluates selectors before nodes: a selector that
// fails makes the allocation fail.
type seenDevice struct {
	index   int
	reached bool
}

// NewInventory reads all slices, of any generation, and the nodes that may reach them.
func NewInventory(published []*resourcev1.ResourceSlice, nodes ...*corev1.Node) *Inventory {
	inv := &Inventory{
		slices: map[string]*resourcev1.ResourceSlice{},
		byPool: map[PoolID]map[string]*resourcev1.ResourceSlice{},
		pools:  map[PoolID]*pool{},
		wide:   map[PoolID]*pool{},
		named:  map[string]map[PoolID]bool{},
		nodes:  map[string]*corev1.Node{},
		views:  map[string]*view{},
	}
	for _, n := range nodes {
		inv.SetNode(n)
	}
	touched := map[PoolID]bool{}
	for _, s := range published {
		inv.put(s)
		touched[poolOf(s)] = true
	}
	for id := range touched {
		inv.rebuild(id)
	}
	return inv
}

func poolOf(s *resourcev1.ResourceSlice) PoolID { return PoolID{s.Spec.Driver, s.Spec.Pool.Name} }

// SetNode adds or updates a node. It does nothing if the node's labels and offered resources are the same.
func (inv *Inventory) SetNode(n *corev1.Node) {
	old := inv.nodes[n.Name]
	if old != nil && maps.Equal(old.Labels, n.Labels) && sameOffers(old, n) {
		return
	}
	inv.nodes[n.Name] = n
	delete(inv.views, n.Name)
}

// sameOffers reports whether two states of a node have the same allocatable resources.
func sameOffers(a, b *corev1.Node) bool {
	return maps.EqualFunc(a.Status.Allocatable, b.Status.Allocatable, sameQuantity)
}

// RemoveNode forgets a node. Its slices stay until they are removed.
func (inv *Inventory) RemoveNode(name string) {
	delete(inv.nodes, name)
	delete(inv.views, name)
}

// SetSlice adds or updates a slice. Only nodes that its pool reaches are touched.
func (inv *Inventory) SetSlice(s *resourcev1.ResourceSlice) {
	old := inv.slices[s.Name]
	inv.put(s)
	if old != nil && poolOf(old) != poolOf(s) {
		inv.rebuild(poolOf(old))
	}
	inv.rebuild(poolOf(s))
}

// RemoveSlice forgets a slice; a name that is not known changes nothing.
func (inv *Inventory) RemoveSlice(name string) {
	old := inv.slices[name]
	if old == nil {
		return
	}
	delete(inv.slices, name)
	delete(inv.byPool[poolOf(old)], name)
	inv.rebuild(poolOf(old))
}

// put stores a slice without an update of its pool.
func (inv *Inventory) put(s *resourcev1.ResourceSlice) {
	if old := inv.slices[s.Name]; old != nil {
		delete(inv.byPool[poolOf(old)], s.Name)
	}
	inv.slices[s.Name] = s
	id := poolOf(s)
	if inv.byPool[id] == nil {
		inv.byPool[id] = map[string]*resourcev1.ResourceSlice{}
	}
	inv.byPool[id][s.Name] = s
}

// rebuild makes the pool again from its slices and drops the views of the nodes that it reached or reaches.
func (inv *Inventory) rebuild(id PoolID) {
	if old := inv.pools[id]; old != nil {
		inv.drop(old)
		for _, n := range old.nodes {
			delete(inv.named[n], id)
		}
	}
	delete(inv.pools, id)
	delete(inv.wide, id)
	if len(inv.byPool[id]) == 0 {
		delete(inv.byPool, id)
		return
	}
	p := newPool(id, slices.Collect(maps.Values(inv.byPool[id])))
	inv.pools[id] = p
	if p.wide {
		inv.wide[id] = p
	}
	for _, n := range p.nodes {
		if inv.named[n] == nil {
			inv.named[n] = map[PoolID]bool{}
		}
		inv.named[n][id] = true
	}
	inv.drop(p)
}

// drop forgets the views that the pool may be in.
func (inv *Inventory) drop(p *pool) {
	for _, n := range p.nodes {
		delete(inv.views, n)
	}
	if !p.wide {
		return
	}
	for name, v := range inv.views {
		if _, sees := p.seenFrom(v.node); sees {
			delete(inv.views, name)
		}
	}
}

// Publishers returns the nodes that the slices name whose pools an allocation has devices of, each once and sorted.
// Pools for nodes that their slices select have none.
func (inv *Inventory) Publishers(allocation *resourcev1.AllocationResult) []string {
	var names []string
	for _, r := range allocation.Devices.Results {
		if p := inv.pools[PoolID{r.Driver, r.Pool}]; p != nil {
			names = append(names, p.nodes...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// seenFrom returns the node's part of the pool, and false if the node sees nothing of it.
func (p *pool) seenFrom(n *corev1.Node) (part, bool) {
	seen := part{pool: p}
	reached := make(map[int]bool, len(p.slices))
	for i, s := range p.slices {
		// A slice without devices, or with counters only, is seen too: it decides whether the pool is complete.
		if whole := sliceReach(s); whole != nil && whole.holds(n) {
			reached[i] = true
		}
	}
	for i, d := range p.devices {
		if holds := d.reach.holds(n); holds || d.own {
			seen.some = append(seen.some, seenDevice{i, holds})
			if holds {
				reached[d.slice] = true
			}
		}
	}
	seen.some = slices.DeleteFunc(seen.some, func(g seenDevice) bool { return !reached[p.devices[g.index].slice] })
	seen.last = slices.ContainsFunc(
		p.devices,
		func(d device) bool { return reached[d.slice] && d.BindingConditions != nil },
	)
	hidden := func(g seenDevice) bool { return !g.reached }
	if len(seen.some) == len(p.devices) && !slices.ContainsFunc(seen.some, hidden) {
		seen.whole, seen.some = true, nil
	}
	return seen, len(reached) > 0
}

// each calls the function with the devices that the node reaches, in the allocator's order.
func (p part) each(do func(index int)) {
	if p.whole {
		for i := range p.devices {
			do(i)
		}
		return
	}
	for _, g := range p.some {
		if g.reached {
			do(g.index)
		}
	}
}

// view returns the node's view, nil if there is no such node.
func (inv *Inventory) view(name string) *view {
	if v := inv.views[name]; v != nil {
		return v
	}
	n := inv.nodes[name]
	if n == nil {
		return nil
	}
	v := &view{node: n}
	look := func(p *pool) {
		if seen, sees := p.seenFrom(n); sees {
			v.parts = append(v.parts, seen)
		}
	}
	for id := range inv.named[name] {
		if p := inv.pools[id]; !p.wide {
			look(p)
		}
	}
	for _, p := range inv.wide {
		look(p)
	}
	slices.SortFunc(v.parts, func(a, b part) int {
		if a.last != b.last {
			if b.last {
				return -1
			}
			return 1
		}
		return comparePools(a.id, b.id)
	})
	inv.views[name] = v
	return v
}

// published returns the slices of all pools that the node sees something of.
func (v *view) published() []*resourcev1.ResourceSlice {
	var all []*resourcev1.ResourceSlice
	for _, p := range v.parts {
		all = append(all, p.slices...)
	}
	return all
}

// Nodes returns the names of the nodes, in order.
func (inv *Inventory) Nodes() []string { return slices.Sorted(maps.Keys(inv.nodes)) }

// Problems returns the pools that cannot be used as they are published, in order.
func (inv *Inventory) Problems() []Problem {
	var all []Problem
	for _, p := range inv.pools {
		if p.problem != "" {
			nodes := slices.Compact(slices.Sorted(slices.Values(p.nodes)))
			all = append(all, Problem{p.id, nodes, p.problem})
		}
	}
	slices.SortFunc(all, func(a, b Problem) int { return comparePools(a.Pool, b.Pool) })
	return all
}

// problems returns the problems of the pools that the node sees.
func (v *view) problems() []string {
	var all []string
	for _, p := range v.parts {
		if p.problem != "" {
			all = append(all, p.problem)
		}
	}
	return all
}
