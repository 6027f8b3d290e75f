package dra

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// matchGroup is needs of one claim whose devices must all have one value of an attribute.
type matchGroup struct {
	key   string
	needs []need
}

// aligned checks each attribute that must match: the groups that request the same are given to its values; each value
// hosts a number of them.
func (at *trial) aligned() string {
	for _, attribute := range at.matched() {
		values, known := at.values(attribute)
		if !known {
			continue
		}
		for _, groups := range alikeGroups(at.groups(attribute)) {
			hosted := 0
			for _, value := range values {
				hosted += at.hosts(groups[0], len(groups)-hosted, value)
				if hosted == len(groups) {
					break
				}
			}
			if hosted < len(groups) {
				return misaligned(groups, hosted, attribute)
			}
		}
	}
	return ""
}

// misaligned returns the rule for groups when only some have a value to share.
func misaligned(groups []matchGroup, hosted int, attribute string) string {
	members := make([]string, 0, len(groups[0].needs))
	for _, n := range groups[0].needs {
		members = append(members, n.name)
	}
	what := strings.Join(members, "+")
	if len(groups) == 1 {
		return fmt.Sprintf("no value of %s has free devices for %s", attribute, what)
	}
	return fmt.Sprintf(
		"%d groups like %s, each aligned on %s, are needed: %d can be had",
		len(groups),
		what,
		attribute,
		hosted,
	)
}

// matched returns the attributes of constraints that ask for one value, each once.
func (at *trial) matched() []string {
	var all []string
	for _, b := range at.terms.constraints {
		if !b.distinct && len(b.requests) > 0 && !slices.Contains(all, b.attribute) {
			all = append(all, b.attribute)
		}
	}
	return all
}

// attributeValue is a value of an attribute and the devices that have it.
type attributeValue struct {
	devices map[int]bool
	text    string
}

// values returns the values of an attribute, in order. The matches are not known if a device has a list of them or a
// request computes its own.
func (at *trial) values(attribute string) ([]attributeValue, bool) {
	for _, n := range at.needs {
		if n.derives {
			return nil, false
		}
	}
	byText := map[string]map[int]bool{}
	for i, s := range at.devices {
		a, found := s.attribute(attribute)
		if !found {
			continue
		}
		text := scalar(a)
		if text == "" {
			return nil, false
		}
		if byText[text] == nil {
			byText[text] = map[int]bool{}
		}
		byText[text][i] = true
	}
	all := make([]attributeValue, 0, len(byText))
	for _, text := range sortedKeys(byText) {
		all = append(all, attributeValue{byText[text], text})
	}
	return all, true
}

// attribute finds an attribute by its full name. The driver's own attributes may be published without their domain.
func (d device) attribute(name string) (resourcev1.DeviceAttribute, bool) {
	if a, found := d.Attributes[resourcev1.QualifiedName(name)]; found {
		return a, true
	}
	if domain, id, qualified := strings.Cut(name, "/"); qualified && domain == d.driver {
		a, found := d.Attributes[resourcev1.QualifiedName(id)]
		return a, found
	}
	return resourcev1.DeviceAttribute{}, false
}

// scalar writes a value with its type, "" for lists and types that are not known.
func scalar(a resourcev1.DeviceAttribute) string {
	switch {
	case a.StringValue != nil:
		return "string " + *a.StringValue
	case a.IntValue != nil:
		return "int " + strconv.FormatInt(*a.IntValue, 10)
	case a.BoolValue != nil:
		return "bool " + strconv.FormatBool(*a.BoolValue)
	case a.VersionValue != nil:
		return "version " + *a.VersionValue
	}
	return ""
}

// groups joins the needs that constraints on the attribute tie together: constraints that share a need make one group.
func (at *trial) groups(attribute string) []matchGroup {
	// each need to an earlier one of its group or itself, plus one; 0 if it is in none
	ties := make([]int, len(at.needs))
	first := func(n int) int {
		for ties[n] != n+1 {
			n = ties[n] - 1
		}
		return n
	}
	for _, b := range at.terms.constraints {
		if b.distinct || b.attribute != attribute {
			continue
		}
		for _, n := range b.requests {
			ties[n] = cmp.Or(ties[n], n+1)
			one, other := first(b.requests[0]), first(n)
			ties[max(one, other)] = min(one, other) + 1
		}
	}
	byFirst := make([][]need, len(at.needs))
	for n, tie := range ties {
		if tie > 0 {
			byFirst[first(n)] = append(byFirst[first(n)], at.needs[n])
		}
	}
	var all []matchGroup
	for _, needs := range byFirst {
		if needs != nil {
			all = append(all, newMatchGroup(needs))
		}
	}
	return all
}

func newMatchGroup(needs []need) matchGroup {
	keys := make([]string, 0, len(needs))
	for _, n := range needs {
		keys = append(keys, n.key)
	}
	slices.Sort(keys)
	return matchGroup{strings.Join(keys, "\n"), needs}
}

// alikeGroups gathers groups that can stand for each other, in order of the first of each.
func alikeGroups(groups []matchGroup) [][]matchGroup {
	var all [][]matchGroup
	of := map[string]int{}
	for _, t := range groups {
		i, known := of[t.key]
		if !known {
			i = len(all)
			of[t.key] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], t)
	}
	return all
}

// hosts returns an upper bound of the number of groups that the devices of one value can serve, at most the limit.
func (at *trial) hosts(t matchGroup, limit int, value attributeValue) int {
	groups := 0
	for groups < limit && at.serve(t, groups+1, value) {
		groups++
	}
	return groups
}

// serve reports whether nothing speaks against so many groups on the devices of one value.
func (at *trial) serve(t matchGroup, groups int, value attributeValue) bool {
	wanted, g := 0, newFlow()
	devices := at.sink(g)
	for _, group := range at.alike(t.needs) {
		n := group.needs[0]
		v := g.vertex()
		here := 0
		for _, s := range n.from {
			if value.devices[s] {
				here++
				if !n.admin {
					g.edge(v, devices(s), at.perDevice(s, len(group.needs)*groups))
				}
			}
		}
		if n.admin {
			if here < n.least {
				return false
			}
			continue
		}
		g.edge(source, v, group.least()*groups)
		wanted += group.least() * groups
	}
	return g.most() >= wanted
}
