package dra

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// nodeClass numbers an equivalence class of nodes, which a demand cannot distinguish: the same devices through its
// lens, in the same order and the same state. Only the numbers of one Fitter can be compared.
type nodeClass uint32

// numbering gives numbers to texts. A number is never given twice, so forgetting texts costs time and no more.
type numbering struct {
	numbers map[string]uint32
	next    uint32
}

func (n *numbering) number(text []byte) uint32 {
	if id, known := n.numbers[string(text)]; known {
		return id
	}
	n.next++
	remember(n.numbers, string(text), n.next)
	return n.next
}

// mostKept is the largest number of remembered values of a kind that need few bytes each: with 16,000 nodes, enough for
// the looks of 16 lenses.
const mostKept = 1 << 18

// remember adds to a map, which starts afresh when it has become too large.
func remember[K comparable, V any](m map[K]V, key K, value V) {
	if len(m) >= mostKept {
		clear(m)
	}
	m[key] = value
}

// mostRecent is the number of values after which those that are not used meanwhile may be forgotten.
const mostRecent = 512

// recent remembers values that need much memory each: those used last, fewer than 2*mostRecent. A value that is used
// again and again is never forgotten.
type recent[K comparable, V any] struct{ used, before map[K]V }

func (r *recent[K, V]) get(key K) (V, bool) {
	value, known := r.used[key]
	if known {
		return value, true
	}
	if value, known = r.before[key]; known {
		r.put(key, value)
	}
	return value, known
}

func (r *recent[K, V]) put(key K, value V) {
	if r.used == nil || len(r.used) >= mostRecent {
		r.used, r.before = map[K]V{}, r.used
	}
	r.used[key] = value
}

// look holds the inputs from which a nodeClass was computed. Everything in it is compared by address: nothing of it
// ever changes.
type look struct {
	view     *view
	holdings []*holding
	class    nodeClass
}

// lookAt names a node as one lens sees it, with the present or with all devices free: both are evaluated in turn.
type lookAt struct {
	node string
	lens *lens
	free bool
}

// classOf returns the class of a node through a lens. It is computed again only if the node's view or the allocations
// from its pools have changed.
func (f *Fitter) classOf(v *view, l *Ledger, through *lens) nodeClass {
	at := lookAt{v.node.Name, through, v.free(l)}
	last, known := f.looks[at]
	if known && last.view == v && last.same(l) {
		return last.class
	}
	next := look{view: v, holdings: make([]*holding, len(v.parts))}
	f.text = f.text[:0]
	for i, p := range v.parts {
		next.holdings[i] = l.holding(p.id)
		f.text = p.appendState(f.text, next.holdings[i], f.seen(p.pool, through))
	}
	next.class = nodeClass(f.nodeNumbers.number(f.text))
	remember(f.looks, at, next)
	return next.class
}

// free reports whether nothing is taken of the pools that the node sees.
func (v *view) free(l *Ledger) bool {
	return !slices.ContainsFunc(v.parts, func(p part) bool { return l.holding(p.id) != nil })
}

func (k look) same(l *Ledger) bool {
	for i, p := range k.view.parts {
		if k.holdings[i] != l.holding(p.id) {
			return false
		}
	}
	return true
}

// mostSeen is the largest number of remembered views of one pool: a cluster's demands read few sets of attributes.
const mostSeen = 32

// seen returns the numbers of the pool and of its devices as the lens shows them, the pool's first.
func (f *Fitter) seen(p *pool, through *lens) []uint32 {
	read := through.among(p.names)
	if ids := p.seen[read]; ids != nil {
		return ids
	}
	ids := make([]uint32, 0, len(p.devices)+1)
	ids = append(ids, f.deviceNumbers.number(p.appendHead(nil)))
	var text []byte
	for _, d := range p.devices {
		text = d.appendText(text[:0], through)
		ids = append(ids, f.deviceNumbers.number(text))
	}
	if len(p.seen) >= mostSeen {
		clear(p.seen)
	}
	p.seen[read] = ids
	return ids
}

// appendHead appends the relevant fields of the pool besides its devices.
func (p *pool) appendHead(to []byte) []byte {
	to = append(to, "pool "...)
	to = append(to, p.id.Driver...)
	to = strconv.AppendBool(append(to, ' '), p.partial)
	if p.problem != "" && !p.partial {
		to = append(to, p.problem...)
	}
	for _, set := range sortedKeys(p.counters) {
		to = append(append(to, '\n'), set...)
		for _, name := range sortedKeys(p.counters[set]) {
			c := p.counters[set][name]
			to = append(append(append(append(to, ' '), name...), '='), c.Value.String()...)
		}
	}
	return to
}

// appendText appends the relevant fields of the device.
func (d device) appendText(to []byte, through *lens) []byte {
	to = append(to, d.driver...)
	read := make([]resourcev1.QualifiedName, 0, len(through.names))
	for name := range d.Attributes {
		if through.reads(name) {
			read = append(read, name)
		}
	}
	slices.Sort(read)
	for _, name := range read {
		to = appendAttribute(append(append(to, '\n'), name...), d.Attributes[name])
	}
	for _, name := range sortedKeys(d.Capacity) {
		c := d.Capacity[name]
		// The size of a capacity without a policy that no demand reads and no pods share can refuse nothing.
		if through.reads(name) || d.shareable() || c.RequestPolicy != nil {
			to = append(append(append(to, "\n#"...), name...), '=')
			to = append(to, c.Value.String()...)
			to = appendJSON(to, c.RequestPolicy)
		}
	}
	to = fmt.Appendf(to, "\n%t %t %t", d.shareable(), d.reach.wide(), d.BindsToNode != nil && *d.BindsToNode)
	if d.Taints != nil || d.ConsumesCounters != nil || d.BindingConditions != nil {
		to = appendJSON(to, []any{d.Taints, d.ConsumesCounters, d.BindingConditions})
	}
	return to
}

// appendAttribute writes a value with its type.
func appendAttribute(to []byte, a resourcev1.DeviceAttribute) []byte {
	switch {
	case a.StringValue != nil:
		return strconv.AppendQuote(append(to, '='), *a.StringValue)
	case a.IntValue != nil:
		return strconv.AppendInt(append(to, " int "...), *a.IntValue, 10)
	case a.BoolValue != nil:
		return strconv.AppendBool(append(to, " bool "...), *a.BoolValue)
	}
	return appendJSON(append(to, ' '), a)
}

// appendJSON appends the JSON of a value of the API. Equal values have equal JSON, and marshaling them does not fail.
func appendJSON(to []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Appendf(to, "%v", value)
	}
	return append(to, text...)
}

// appendState appends the node's present view of the pool: numbers for the devices and the state of each.
func (p part) appendState(to []byte, h *holding, seen []uint32) []byte {
	to = appendNumber(to, seen[0])
	each := func(i int) {
		to = appendNumber(to, seen[i+1])
		if h == nil {
			return
		}
		switch u := h.of(p.devices[i].Name); {
		case u.taken:
			to = append(to, '!')
		case u.shares > 0:
			to = append(appendQuantities(append(to, '('), u.consumed), ')')
		}
	}
	if p.whole {
		for i := range p.devices {
			each(i)
		}
		return to
	}
	for _, g := range p.some {
		if !g.reached {
			to = append(to, '-')
		}
		each(g.index)
	}
	if h != nil && len(p.counters) > 0 {
		left := p.remaining(h)
		for _, set := range sortedKeys(left) {
			to = appendQuantities(append(append(to, '\n'), set...), left[set])
		}
	}
	return append(to, '~')
}

func appendNumber(to []byte, n uint32) []byte {
	return append(to, ' ', byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func appendQuantities[Name ~string](to []byte, all map[Name]resource.Quantity) []byte {
	for _, name := range sortedKeys(all) {
		q := all[name]
		to = append(append(append(append(to, ' '), name...), '='), q.String()...)
	}
	return to
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// sameQuantity reports whether two quantities are equal, however they are written.
func sameQuantity(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
