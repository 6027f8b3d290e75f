package dra

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// team is needs of one claim whose devices must all have one value of an attribute.
type team struct {
	key   string
	needs []need
}

// aligned checks each attribute that must match: the teams that request the same are given to its values; each value
// hosts a number of them.
func (at *trial) aligned() string {
	for _, attribute := range at.matched() {
		values, known := at.values(attribute)
		if !known {
			continue
		}
		for _, teams := range alikeTeams(at.teams(attribute)) {
			hosted := 0
			for _, value := range values {
				hosted += at.hosts(teams[0], len(teams)-hosted, value)
				if hosted == len(teams) {
					break
				}
			}
			if hosted < len(teams) {
				return misaligned(teams, hosted, attribute)
			}
		}
	}
	return ""
}

// misaligned returns the rule for teams when only some have a value to share.
func misaligned(teams []team, hosted int, attribute string) string {
	members := make([]string, 0, len(teams[0].needs))
	for _, n := range teams[0].needs {
		members = append(members, n.name)
	}
	what := strings.Join(members, "+")
	if len(teams) == 1 {
		return fmt.Sprintf("no value of %s has free devices for %s", attribute, what)
	}
	return fmt.Sprintf(
		"%d groups like %s, each aligned on %s, are needed: %d can be had",
		len(teams),
		what,
		attribute,
		hosted,
	)
}

// matched returns the attributes of constraints that ask for one value, each once.
func (at *trial) matched() []string {
	var all []string
	for _, b := range at.terms.bonds {
		if !b.distinct && len(b.wants) > 0 && !slices.Contains(all, b.attribute) {
			all = append(all, b.attribute)
		}
	}
	return all
}

// siteValue is a value of an attribute and the sites that have it.
type siteValue struct {
	sites map[int]bool
	text  string
}

// values returns the values of an attribute, in order. The matches are not known if a device has a list of them or a
// request computes its own.
func (at *trial) values(attribute string) ([]siteValue, bool) {
	for _, n := range at.needs {
		if n.derives {
			return nil, false
		}
	}
	byText := map[string]map[int]bool{}
	for i, s := range at.sites {
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
	all := make([]siteValue, 0, len(byText))
	for _, text := range sortedKeys(byText) {
		all = append(all, siteValue{byText[text], text})
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

// teams joins the needs that constraints on the attribute tie together: constraints that share a need make one team.
func (at *trial) teams(attribute string) []team {
	ties := make(
		[]int,
		len(at.needs),
	) // each need to an earlier one of its team or itself, plus one; 0 if it is in none
	first := func(n int) int {
		for ties[n] != n+1 {
			n = ties[n] - 1
		}
		return n
	}
	for _, b := range at.terms.bonds {
		if b.distinct || b.attribute != attribute {
			continue
		}
		for _, n := range b.wants {
			ties[n] = cmp.Or(ties[n], n+1)
			one, other := first(b.wants[0]), first(n)
			ties[max(one, other)] = min(one, other) + 1
		}
	}
	byFirst := make([][]need, len(at.needs))
	for n, tie := range ties {
		if tie > 0 {
			byFirst[first(n)] = append(byFirst[first(n)], at.needs[n])
		}
	}
	var all []team
	for _, needs := range byFirst {
		if needs != nil {
			all = append(all, newTeam(needs))
		}
	}
	return all
}

func newTeam(needs []need) team {
	keys := make([]string, 0, len(needs))
	for _, n := range needs {
		keys = append(keys, n.key)
	}
	slices.Sort(keys)
	return team{strings.Join(keys, "\n"), needs}
}

// alikeTeams gathers teams that can stand for each other, in order of the first of each.
func alikeTeams(teams []team) [][]team {
	var all [][]team
	of := map[string]int{}
	for _, t := range teams {
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

// hosts returns an upper bound of the number of teams that the devices of one value can serve, at most the limit.
func (at *trial) hosts(t team, limit int, value siteValue) int {
	teams := 0
	for teams < limit && at.serve(t, teams+1, value) {
		teams++
	}
	return teams
}

// serve reports whether nothing speaks against so many teams on the devices of one value.
func (at *trial) serve(t team, teams int, value siteValue) bool {
	wanted, g := 0, newFlow()
	sites := at.sink(g)
	for _, group := range at.alike(t.needs) {
		n := group.needs[0]
		v := g.vertex()
		here := 0
		for _, s := range n.from {
			if value.sites[s] {
				here++
				if !n.admin {
					g.edge(v, sites(s), at.perSite(s, len(group.needs)*teams))
				}
			}
		}
		if n.admin {
			if here < n.least {
				return false
			}
			continue
		}
		g.edge(source, v, group.least()*teams)
		wanted += group.least() * teams
	}
	return g.most() >= wanted
}
