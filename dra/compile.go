package dra

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// ClassLookup finds a device class by its name; nil if there is none.
type ClassLookup func(name string) *resourcev1.DeviceClass

// Demand reads the claims of one pod that are not allocated yet. Its Fault reports the first invalid one.
func (f *Fitter) Demand(lookup ClassLookup, claims ...*resourcev1.ResourceClaim) *Demand {
	d := &Demand{Claims: claims}
	found := deviceClasses{}
	for _, c := range claims {
		if d.Fault = gather(found, lookup, c); d.Fault != "" {
			return d
		}
	}
	key := keyOf(claims, found)
	t, known := f.terms.get(key)
	if !known {
		f.asked++
		t = f.compile(claims, found)
		t.number = f.asked
		f.terms.put(key, t)
	}
	d.Fault = t.fault
	d.terms = t
	return d
}

// keyOf returns a cache key. The allocator cannot tell claims with equal keys apart.
func keyOf(claims []*resourcev1.ResourceClaim, found deviceClasses) string {
	var key []byte
	for _, c := range claims {
		key = appendJSON(key, []any{c.Spec.Devices.Requests, c.Spec.Devices.Constraints})
	}
	for _, name := range sortedKeys(found) {
		key = appendJSON(append(key, name...), found[name].Spec.Selectors)
	}
	return string(key)
}

// gather adds the classes that the claim names. It returns the claim's fault as a sentence, "" for none.
func gather(found deviceClasses, lookup ClassLookup, c *resourcev1.ResourceClaim) string {
	for _, r := range c.Spec.Devices.Requests {
		named := classNames(r)
		if len(named) == 0 {
			return fmt.Sprintf(
				"request %s of claim %s asks in a way that this version does not know; upgrade Lockstep, or use exactly "+
					"or firstAvailable",
				r.Name,
				claimName(c),
			)
		}
		for _, name := range named {
			if found[name] == nil {
				if found[name] = lookup(name); found[name] == nil {
					return fmt.Sprintf(
						"request %s of claim %s: device class %q does not exist; create it or name another",
						r.Name,
						claimName(c),
						name,
					)
				}
			}
		}
	}
	return ""
}

func classNames(r resourcev1.DeviceRequest) []string {
	if r.Exactly != nil {
		return []string{r.Exactly.DeviceClassName}
	}
	var all []string
	for _, s := range r.FirstAvailable {
		all = append(all, s.DeviceClassName)
	}
	return all
}

func claimName(c *resourcev1.ResourceClaim) string {
	if c.Name == "" {
		return strings.TrimSuffix(c.GenerateName, "-")
	}
	return c.Name
}

// compile makes terms of claims whose classes are there. It stops at a fault: terms with a fault are stored too, so
// that claims that do not compile are compiled once and not for each member of a gang.
func (f *Fitter) compile(claims []*resourcev1.ResourceClaim, found deviceClasses) *terms {
	t := &terms{claims: claims, deviceClasses: found, selected: map[selection]verdict{}}
	read := &lens{names: map[string]bool{}}
	for i, c := range claims {
		first := len(t.requests)
		for _, r := range c.Spec.Devices.Requests {
			w := request{claim: i, name: r.Name, alternatives: alternatives(r)}
			for o := range w.alternatives {
				if t.fault = f.selects(t, read, &w.alternatives[o], r); t.fault != "" {
					return t
				}
				read.requested(w.alternatives[o].capacity)
			}
			w.key = w.standIn()
			t.requests = append(t.requests, w)
		}
		if t.fault = tooMany(t.requests[first:]); t.fault != "" {
			return t
		}
		for _, constraint := range c.Spec.Devices.Constraints {
			if constraint.MatchAttribute == nil && constraint.DistinctAttribute == nil {
				t.fault = "a claim has a constraint that this version does not know; upgrade Lockstep, or use matchAttribute " +
					"or distinctAttribute"
				return t
			}
			read.constrained(constraint)
			t.constraints = append(t.constraints, constraintOf(i, constraint, t.requests, first))
		}
	}
	t.lens = f.lens(read)
	return t
}

// mostRead is the largest number of names of a lens. One that reads more reads everything.
const mostRead = 256

// lens returns the one lens that reads this.
func (f *Fitter) lens(read *lens) *lens {
	if len(read.names) > mostRead {
		read = &lens{everything: true}
	}
	text := read.text()
	if known, ok := f.lenses.get(text); ok {
		return known
	}
	f.lenses.put(text, read)
	return read
}

// expression is the part of an expression's evaluation that does not depend on devices.
type expression struct {
	lens  *lens
	price price
}

// expression caches the lenses and prices of expressions: computing one takes as long as compiling the expression.
func (f *Fitter) expression(compiled cel.CompilationResult) expression {
	e, known := f.expressions.get(compiled.Expression)
	if !known {
		e = expression{reading(compiled), priceOf(compiled)}
		f.expressions.put(compiled.Expression, e)
	}
	return e
}

// alternatives returns the alternatives of a request without their selectors.
func alternatives(r resourcev1.DeviceRequest) []alternative {
	if e := r.Exactly; e != nil {
		return []alternative{{
			name: r.Name, deviceClass: e.DeviceClassName, count: int(e.Count),
			all:   e.AllocationMode == resourcev1.DeviceAllocationModeAll,
			admin: e.AdminAccess != nil && *e.AdminAccess, derives: e.DerivedAttributes,
			capacity: e.Capacity, tolerations: e.Tolerations,
		}}
	}
	all := make([]alternative, 0, len(r.FirstAvailable))
	for _, s := range r.FirstAvailable {
		all = append(all, alternative{
			name:        resourceclaim.CreateSubRequestRef(r.Name, s.Name),
			deviceClass: s.DeviceClassName, count: int(s.Count),
			all:     s.AllocationMode == resourcev1.DeviceAllocationModeAll,
			derives: s.DerivedAttributes, capacity: s.Capacity, tolerations: s.Tolerations,
		})
	}
	return all
}

// selects compiles the selectors of an alternative, its class's first, and returns the first failure as a sentence.
func (f *Fitter) selects(t *terms, read *lens, o *alternative, r resourcev1.DeviceRequest) string {
	var list []selector
	add := func(of string, selectors []resourcev1.DeviceSelector, priced bool) string {
		for _, s := range selectors {
			if s.CEL == nil {
				return fmt.Sprintf(
					"request %s: %s selects in a way that this version does not know; upgrade Lockstep, or use cel",
					o.name,
					of,
				)
			}
			compiled := f.compiled.GetOrCompile(s.CEL.Expression)
			if compiled.Error != nil {
				return fmt.Sprintf("request %s: the selector %q of %s does not compile: %s",
					o.name, s.CEL.Expression, of, oneLine(compiled.Error.Detail))
			}
			e := f.expression(compiled)
			if priced {
				if fault := t.charge(e.price, o.name, "selector"); fault != "" {
					return fault
				}
			}
			read.add(e.lens)
			list = append(list, selector{s.CEL.Expression, of, compiled})
		}
		return ""
	}
	if fault := add("device class "+o.deviceClass, t.deviceClasses[o.deviceClass].Spec.Selectors, false); fault != "" {
		return fault
	}
	if fault := add("request "+o.name, ownSelectors(r, o.name), true); fault != "" {
		return fault
	}
	if fault := f.derives(t, read, o); fault != "" {
		return fault
	}
	same := func(k []selector) bool {
		return slices.EqualFunc(k, list, func(a, b selector) bool { return a.text == b.text })
	}
	if o.kind = slices.IndexFunc(t.kinds, same); o.kind < 0 {
		o.kind = len(t.kinds)
		t.kinds = append(t.kinds, list)
	}
	return ""
}

// derives compiles the expressions of the attributes that an alternative derives, and returns the first failure as a
// sentence.
func (f *Fitter) derives(t *terms, read *lens, o *alternative) string {
	for _, a := range o.derives {
		compiled := f.compiled.GetOrCompileDerivedAttribute(a.Expression)
		if compiled.Error != nil {
			return fmt.Sprintf("request %s: the expression %q of attribute %s does not compile: %s",
				o.name, a.Expression, a.Name, oneLine(compiled.Error.Detail))
		}
		e := f.expression(compiled)
		if fault := t.charge(e.price, o.name, "derived attribute"); fault != "" {
			return fault
		}
		read.add(e.lens)
	}
	return ""
}

// ownSelectors returns the selectors of the request, or of its alternative of that name.
func ownSelectors(r resourcev1.DeviceRequest, name string) []resourcev1.DeviceSelector {
	if r.Exactly != nil {
		return r.Exactly.Selectors
	}
	for _, s := range r.FirstAvailable {
		if resourceclaim.CreateSubRequestRef(r.Name, s.Name) == name {
			return s.Selectors
		}
	}
	return nil
}

// oneLine returns the first line of a compiler's message; the lines after it draw arrows.
func oneLine(text string) string {
	text, _, _ = strings.Cut(strings.ReplaceAll(text, "compilation failed: ", ""), "\n")
	return text
}

// standIn returns a key: equal for requests with the same alternatives, which can stand for each other.
func (w request) standIn() string {
	type plain struct {
		Kind, Count int
		All, Admin  bool
		Derives     []resourcev1.DeviceDerivedAttribute
		Capacity    *resourcev1.CapacityRequirements
		Tolerations []resourcev1.DeviceToleration
	}
	all := make([]plain, 0, len(w.alternatives))
	for _, o := range w.alternatives {
		all = append(all, plain{o.kind, o.count, o.all, o.admin, o.derives, o.capacity, o.tolerations})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return w.name // stands for no other
	}
	return string(text)
}

// tooMany refuses claims that no node could be given: one claim holds a limited number of devices.
func tooMany(requests []request) string {
	const most = resourcev1.AllocationResultsMaxSize
	least := 0
	for _, w := range requests {
		fewest := most + 1
		for _, o := range w.alternatives {
			if o.all {
				fewest = 0
				break
			}
			fewest = min(fewest, o.count)
		}
		if least = least + fewest; least > most {
			return fmt.Sprintf(
				"request %s is one too many: a claim can have at most %d devices; divide it",
				w.name,
				most,
			)
		}
	}
	return ""
}

// constraintOf returns the constraint between the requests of a claim, which start at first.
func constraintOf(claim int, c resourcev1.DeviceConstraint, requests []request, first int) constraint {
	b := constraint{claim: claim}
	if c.DistinctAttribute != nil {
		b.distinct = true
		b.attribute = string(*c.DistinctAttribute)
	} else {
		b.attribute = string(*c.MatchAttribute)
	}
	for i, w := range requests[first:] {
		named := func(o alternative) bool { return slices.Contains(c.Requests, o.name) }
		free := func(o alternative) bool { return !named(o) }
		if len(c.Requests) == 0 || slices.Contains(c.Requests, w.name) || !slices.ContainsFunc(w.alternatives, free) {
			b.requests = append(b.requests, first+i)
		}
	}
	return b
}
