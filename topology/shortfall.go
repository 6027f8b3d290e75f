package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Shortfall is the answer no: what was tried, how near it came, and what stood in the way.
//
// Outside, Barred, Full and Open count every node of the tree once. For a gang of several shapes they are those of the
// shape that lacked places in the nearest domain.
type Shortfall struct {
	Gang    string
	Members int
	// Level is the required level; the zero Level if none was required and the whole fleet is too small.
	Level Level
	// Nearest are the domains that hold most of the members, at most three, best first.
	Nearest []Near
	// Lacking is the first member without a place in the nearest domain if the gang has several shapes, else empty.
	Lacking string
	// Outside is the number of nodes that lack the level's label.
	Outside int
	// Barred are the rules that keep members from nodes inside the level, the one with most nodes first.
	Barred []Rule
	// Full is the number of nodes without room for a single member.
	Full int
	// Open is the number of nodes with room for at least one.
	Open int
	// Unknown is the required level if the tree has no such level; Known are those it has. Nothing else is set then.
	Unknown string
	Known   []Level
	// Fault is a mistake in the call. Nothing else is set then.
	Fault Fault
}

// Near is a domain that came close: it holds this many of the members.
type Near struct {
	Domain Domain
	Holds  int
}

// Rule is what bars members from nodes, in the caller's words, and from how many.
type Rule struct {
	Rule  string
	Nodes int
}

// nearest is how many domains a shortfall lists.
const nearest = 3

// explain says why no candidate held the gang.
func (a *ask) explain() *Shortfall {
	s := &Shortfall{Gang: a.gang.Name, Members: len(a.gang.Members)}
	if a.required >= 0 {
		s.Level = a.tree.levels[a.required]
	}
	lacking := 0
	for v, u := range a.tree.vertices {
		if u.level != a.required {
			continue
		}
		near, kind := a.near(v)
		// Domains come in path order, so an equal one goes behind those already there.
		at, _ := slices.BinarySearchFunc(s.Nearest, near, func(x, y Near) int {
			return cmp.Or(cmp.Compare(y.Holds, x.Holds), -1)
		})
		if at == nearest {
			continue
		}
		if at == 0 {
			lacking = kind
		}
		near.Domain = a.tree.domain(v)
		s.Nearest = slices.Insert(s.Nearest, at, near)
		s.Nearest = s.Nearest[:min(len(s.Nearest), nearest)]
	}
	if len(a.kinds) > 1 && len(s.Nearest) > 0 {
		s.Lacking = a.gang.Members[a.kinds[lacking].ranks[0]].Name
	}
	a.tally(s, a.kinds[lacking])
	return s
}

// near returns how many members the vertex holds and the first kind that lacks places there.
func (a *ask) near(v int) (Near, int) {
	if len(a.kinds) == 1 { // no need to pack
		return Near{Holds: a.kinds[0].slots[v]}, 0
	}
	p := a.pack(v)
	return Near{Holds: len(a.gang.Members) - p.missing}, p.lacking
}

// tally counts the nodes by what stands between them and a member of the kind.
func (a *ask) tally(s *Shortfall, k kind) {
	rules := make(map[string]int)
	for node, leaf := range a.tree.leaves {
		switch {
		case a.required >= 0 && a.tree.vertices[a.tree.ancestor(node, a.required)].level != a.required:
			s.Outside++
		case k.shape.Barred != nil && k.shape.Barred[node] != "":
			rules[k.shape.Barred[node]]++
		case k.slots[leaf] == 0:
			s.Full++
		default:
			s.Open++
		}
	}
	for rule, nodes := range rules {
		s.Barred = append(s.Barred, Rule{rule, nodes})
	}
	slices.SortFunc(s.Barred, func(x, y Rule) int {
		return cmp.Or(cmp.Compare(y.Nodes, x.Nodes), strings.Compare(x.Rule, y.Rule))
	})
}

// String says it in one line that a person can act on.
func (s *Shortfall) String() string {
	var text string
	switch {
	case s.Fault != "":
		text = "cannot be placed: " + string(s.Fault)
	case s.Unknown != "":
		text = "needs one " + s.Unknown + ", but the cluster has no such level; " + knownLevels(s.Known)
	default:
		text = strings.Join(slices.DeleteFunc([]string{s.need(), s.near(), s.obstacles()},
			func(part string) bool { return part == "" }), "; ")
	}
	return strings.Map(func(r rune) rune { // names and rules are the caller's
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

func knownLevels(levels []Level) string {
	if len(levels) == 0 {
		return "no node carries a topology label"
	}
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = l.label()
	}
	return "it has " + strings.Join(names, ", ")
}

// label is how prose speaks of a level: its name and key, or what there is of them.
func (l Level) label() string {
	if l.Name == "" || l.Name == l.Key {
		return l.Key
	}
	return l.Name + " (" + l.Key + ")"
}

func (s *Shortfall) need() string {
	if s.Level == (Level{}) {
		return "needs " + quantity(s.Members, "member")
	}
	return "needs " + quantity(s.Members, "member") + " in one " + s.Level.label()
}

func (s *Shortfall) near() string {
	if len(s.Nearest) == 0 {
		return "no node is in a " + cmp.Or(s.Level.Name, s.Level.Key)
	}
	best := s.Nearest[0]
	text := fmt.Sprintf("nearest %s: %d of %d", best.Domain, best.Holds, s.Members)
	if s.Level == (Level{}) {
		text = fmt.Sprintf("the cluster holds %d of %d", best.Holds, s.Members)
	}
	if s.Lacking != "" {
		text += ", without " + s.Lacking
	}
	return text
}

func (s *Shortfall) obstacles() string {
	var parts []string
	for _, r := range s.Barred {
		parts = append(parts, quantity(r.Nodes, "node")+" barred by "+r.Rule)
	}
	if s.Full > 0 {
		parts = append(parts, quantity(s.Full, "node")+" without room")
	}
	if s.Outside > 0 {
		level := cmp.Or(s.Level.Name, s.Level.Key)
		parts = append(parts, quantity(s.Outside, "node")+" outside every "+level+" (no label)")
	}
	return strings.Join(parts, ", ")
}

func quantity(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
