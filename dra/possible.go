package dra

import (
	"context"
	"fmt"
	"slices"
)

// need is a request as a necessary condition: every result of the allocator gives it at least so many of these devices.
type need struct {
	*request

	// least is the number of devices that the request needs, of alternatives the smallest number.
	least int
	// from are the indexes of the devices that the request could use, by one alternative or another.
	from []int
	// admin needs take nothing from others.
	admin   bool
	derives bool
}

// trial holds the inputs of the necessary conditions: the devices of a node and the pod's needs of them.
type trial struct {
	f       *Fitter
	view    *view
	terms   *terms
	devices []deviceState
	// partial is set if a pool that the node sees is not complete.
	partial bool
	needs   []need
}

// possible returns the rule that excludes the demand on a node in this state, "" if none does. The allocator refuses a
// demand that a rule excludes, and may refuse others.
func (f *Fitter) possible(ctx context.Context, v *view, l *Ledger, t *terms) (string, *trial) {
	at := &trial{f: f, view: v, terms: t, devices: f.devices(v, l, t.lens)}
	at.partial = slices.ContainsFunc(v.parts, func(p part) bool { return p.partial })
	known := map[string]need{}
	for i := range t.requests {
		w := &t.requests[i]
		n, same := known[w.key]
		if n.request = w; !same {
			var rule string
			if n, rule = at.need(ctx, w); rule != "" {
				return rule, at
			}
			known[w.key] = n
		}
		at.needs = append(at.needs, n)
	}
	// Users read the first failure: the attribute of a constraint that they wrote says more than a number of devices,
	// and counters, which only drivers define, are last.
	for _, condition := range []func() string{at.aligned, at.distinct, at.together, at.counters} {
		if rule := condition(); rule != "" {
			return rule, at
		}
	}
	return "", at
}

// need looks for the devices that each alternative could use.
func (at *trial) need(ctx context.Context, w *request) (need, string) {
	n := need{request: w, least: unlimited}
	var first string
	for _, o := range w.alternatives {
		if o.all && at.partial {
			return n, fmt.Sprintf("request %s asks for all devices and a resource pool is not complete", w.name)
		}
		n.admin = n.admin || o.admin
		n.derives = n.derives || len(o.derives) > 0
		least, from, rule := at.alternative(ctx, o)
		if rule != "" {
			if first == "" {
				first = rule
			}
			continue
		}
		n.least = min(n.least, least)
		n.from = append(n.from, from...)
	}
	if n.least == unlimited {
		return n, first
	}
	slices.Sort(n.from)
	n.from = slices.Compact(n.from)
	return n, ""
}

// alternative returns the number of devices that the alternative needs and those that it could use, or the rule that
// excludes it.
func (at *trial) alternative(ctx context.Context, o alternative) (least int, from []int, rule string) {
	// Of all devices those count that could ever serve; spoiled are those of them that cannot now.
	selected, sure, spoiled := 0, 0, 0
	for i, s := range at.devices {
		if !at.terms.selects(ctx, o.kind, s).yes {
			continue
		}
		could, surely := at.f.offers(o, s)
		if o.all && !could {
			continue
		}
		selected++
		usable := at.f.usable(o, s)
		if usable {
			from = append(from, i)
		}
		if surely {
			sure++
			if !usable {
				spoiled++
			}
		}
	}
	least = o.count
	if o.all {
		least = max(sure, 1)
	}
	if len(from) < least || o.all && spoiled > 0 {
		return 0, nil, fmt.Sprintf("request %s needs %s of class %s: %s, %d free",
			o.name, count(max(least, o.count), "device"), o.deviceClass, count(selected, "device"), len(from))
	}
	return least, from, ""
}

// together asks for the devices of all requests at the same time: each device serves one of them, or has so many
// shares, and each counter set holds so many devices.
func (at *trial) together() string {
	wanted, g := 0, newFlow()
	devices := at.sink(g)
	for _, group := range at.alike(at.needs) {
		n := group.needs[0]
		if n.admin {
			continue
		}
		v := g.vertex()
		g.edge(source, v, group.least())
		wanted += group.least()
		for _, s := range n.from {
			g.edge(v, devices(s), at.perDevice(s, len(group.needs)))
		}
	}
	if got := g.most(); got < wanted {
		return fmt.Sprintf("the requests need %s at once: %d can be had", count(wanted, "device"), got)
	}
	return ""
}

// alike is needs that can stand for each other.
type alike struct{ needs []need }

func (a alike) least() int {
	sum := 0
	for _, n := range a.needs {
		sum += n.least
	}
	return sum
}

// alike gathers needs that can stand for each other, in order of the first of each.
func (at *trial) alike(needs []need) []alike {
	var all []alike
	of := map[string]int{}
	for _, n := range needs {
		i, known := of[n.key]
		if !known {
			i = len(all)
			of[n.key] = i
			all = append(all, alike{})
		}
		all[i].needs = append(all[i].needs, n)
	}
	return all
}

// perDevice returns the number of times that so many requests could use one device: each at most once, and only a
// device with shares more than once in all.
func (at *trial) perDevice(s, requests int) int {
	if at.f.features.ConsumableCapacity && at.devices[s].shareable() {
		return requests
	}
	return 1
}

// sink joins devices to the sink of the network on demand, each with the shares that it has, devices that draw on
// counters by way of their counter set.
func (at *trial) sink(g *flow) func(device int) int {
	vertices := map[int]int{}
	sets := map[setName]int{}
	return func(s int) int {
		v, known := vertices[s]
		if known {
			return v
		}
		v = g.vertex()
		vertices[s] = v
		next := sink
		if set, draws := at.setOf(s); draws {
			if next, known = sets[set]; !known {
				next = g.vertex()
				sets[set] = next
				g.edge(next, sink, at.setHolds(set))
			}
		}
		g.edge(v, next, at.most(s))
		return v
	}
}

// most returns an upper bound of the number of requests that could use the device at once. They may be of several
// kinds: of each capacity every one of them draws at least what the most modest alternative draws.
func (at *trial) most(s int) int {
	if !at.f.features.ConsumableCapacity || !at.devices[s].shareable() {
		return 1
	}
	var alternatives []alternative
	for _, w := range at.terms.requests {
		alternatives = append(alternatives, w.alternatives...)
	}
	return max(at.f.shares(at.devices[s], alternatives...), 1)
}
