package topologytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// placedGang is a gang with the node and the demand of each of its members.
type placedGang struct {
	gang    topology.Gang
	nodes   []string
	demands []topology.Capacity
}

// gang reads the arguments of place.
func (s *Script) gang(args []Arg) (topology.Gang, error) {
	g := topology.Gang{Name: args[0].Key}
	barred := s.barred()
	for i, a := range args[1:] {
		if slices.Contains(s.resources, a.Key) {
			continue
		}
		if known, err := rule(&g, a); known || err != nil {
			if err != nil {
				return g, err
			}
			continue
		}
		count, err := strconv.Atoi(a.Value)
		if err != nil {
			return g, fmt.Errorf("reading %s: %w", a.Key, err)
		}
		rest := args[i+2:] // the role's resources end where the next role begins
		end := slices.IndexFunc(rest, func(b Arg) bool { return !slices.Contains(s.resources, b.Key) })
		if end >= 0 {
			rest = rest[:end]
		}
		demand, err := s.capacity(rest)
		if err != nil {
			return g, err
		}
		for m := range count {
			g.Members = append(g.Members, topology.Member{Name: fmt.Sprintf("%s-%d", a.Key, m), Shape: len(g.Shapes)})
		}
		g.Shapes = append(g.Shapes, topology.Shape{Demand: demand, Barred: barred})
	}
	return g, nil
}

// rule reads an argument that is a rule of the gang.
func rule(g *topology.Gang, a Arg) (known bool, err error) {
	numbers := map[string]*int{
		"segment": &g.Segment.Size,
		"spread":  &g.Spread.Max,
		"spares":  &g.Spares.Nodes,
		"cap":     &g.PerNode,
		"min":     &g.Min,
	}
	words := map[string]*string{
		"require": &g.Required,
		"prefer":  &g.Preferred,
		"in":      &g.Segment.Level,
		"over":    &g.Spread.Level,
		"per":     &g.Spares.Level,
	}
	switch {
	case a.Key == "equal":
		g.Segment.Equal = true
	case a.Key == "talk":
		g.Communication, known = topology.ParseCommunication(a.Value)
		if !known {
			return true, fmt.Errorf("no communication %s", a.Value)
		}
	case numbers[a.Key] != nil:
		if *numbers[a.Key], err = strconv.Atoi(a.Value); err != nil {
			return true, fmt.Errorf("reading %s: %w", a.Key, err)
		}
	case words[a.Key] != nil:
		*words[a.Key] = a.Value
	default:
		return false, nil
	}
	return true, nil
}

// barred returns the rules on the nodes, nil if there are none.
func (s *Script) barred() []string {
	if len(s.rules) == 0 {
		return nil
	}
	t := s.tree()
	barred := make([]string, t.Len())
	for i := range barred {
		barred[i] = s.rules[t.Node(i)]
	}
	return barred
}

// tree is the fleet as it stands; a script whose fleet is no tree is broken.
func (s *Script) tree() *topology.Tree {
	t, err := topology.NewTree(s.levels, s.nodes)
	if err != nil {
		panic(err)
	}
	return t
}

func (s *Script) ledger() topology.Ledger {
	l := topology.Ledger{Tree: s.tree()}
	for i := range l.Tree.Len() {
		l.Free = append(l.Free, s.free[l.Tree.Node(i)])
		l.Total = append(l.Total, s.total[l.Tree.Node(i)])
	}
	return l
}

func (s *Script) place(args []Arg) (string, error) {
	g, err := s.gang(args)
	if err != nil {
		return "", err
	}
	return s.answer(g), nil
}

// answer asks for a place and, if there is one, takes it.
func (s *Script) answer(g topology.Gang) string {
	l := s.ledger()
	p, short, err := topology.Place(l, g)
	if err != nil || short != nil {
		return refused(g, short, err)
	}
	return s.took(l, g, p)
}

// refused returns the reason why there is no answer.
func refused(g topology.Gang, short *topology.Shortfall, err error) string {
	if err != nil {
		return err.Error()
	}
	return g.Name + " " + refusal(short)
}

// took puts a gang on the nodes of its placement.
func (s *Script) took(l topology.Ledger, g topology.Gang, p topology.Placement) string {
	held := placedGang{gang: g}
	held.gang.Members = slices.Clone(g.Members[:len(p.Nodes)])
	for m, n := range p.Nodes {
		demand := g.Shapes[g.Members[m].Shape].Demand
		held.nodes = append(held.nodes, l.Tree.Node(n))
		held.demands = append(held.demands, demand)
		held.gang.Members[m].Placed, held.gang.Members[m].Node = true, n
		if !g.Members[m].Placed {
			s.take(l.Tree.Node(n), demand, g.Name[:1])
		}
	}
	s.gangs[g.Name] = held
	return s.summary(g, p) + s.ranks(p, held.nodes) + "\n" + s.picture(held.nodes)
}

// summary prints the place of a gang and its cost.
func (s *Script) summary(g topology.Gang, p topology.Placement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s -> %s, using", g.Name, p.Within)
	for l, level := range append(slices.Clone(s.levels), topology.Level{Name: "node"}) {
		fmt.Fprintf(&b, " %s=%d", level.Name, p.Levels[l].Domains)
	}
	fmt.Fprintf(&b, ", cost %d", p.Cost)
	if !p.Optimal() {
		fmt.Fprintf(&b, " (at least %d)", p.Bound)
	}
	return b.String()
}

// ranks lists runs of ranks that are on neighboring nodes.
func (s *Script) ranks(p topology.Placement, names []string) string {
	var b strings.Builder
	for from := 0; from < len(names); {
		to := from + 1
		for to < len(names) && (p.Nodes[to] == p.Nodes[to-1] || p.Nodes[to] == p.Nodes[to-1]+1) {
			to++
		}
		fmt.Fprintf(
			&b,
			"\n  ranks %s on %s",
			span(strconv.Itoa(from), strconv.Itoa(to-1)),
			span(names[from], names[to-1]),
		)
		from = to
	}
	return b.String()
}

// span names a run of ranks or of neighboring nodes.
func span(first, last string) string {
	if first == last {
		return first
	}
	return first + ".." + last
}

// refusal is the shortfall's sentence and, as it names only one, the nearest domains.
func refusal(short *topology.Shortfall) string {
	if len(short.Nearest) < 2 {
		return short.String()
	}
	domains := make([]string, len(short.Nearest))
	for i, near := range short.Nearest {
		domains[i] = fmt.Sprintf("%s %d", near.Domain, near.Holds)
	}
	return short.String() + "\n  nearest " + strings.Join(domains, ", ")
}

// repair takes nodes away, with everything on them, and replaces the members that the gang lost.
func (s *Script) repair(args []Arg) (string, error) {
	held, ok := s.gangs[args[0].Key]
	if !ok {
		return "", fmt.Errorf("no gang %s", args[0].Key)
	}
	broken, err := s.named(args[1:])
	if err != nil {
		return "", err
	}
	g := held.gang
	g.Members = slices.Clone(g.Members)
	t := s.tree() // labels may have changed since, and numbers with them
	for m, name := range held.nodes {
		g.Members[m].Node, _ = t.Index(name)
		g.Members[m].Placed = !slices.Contains(broken, name)
	}
	for _, name := range broken {
		s.free[name] = make(topology.Capacity, len(s.resources))
		s.drawn[name] = strings.Repeat("x", len(s.drawn[name]))
	}
	return s.answer(g), nil
}

func (s *Script) drop(args []Arg) (string, error) {
	g, ok := s.gangs[args[0].Key]
	if !ok {
		return "", fmt.Errorf("no gang %s", args[0].Key)
	}
	delete(s.gangs, args[0].Key)
	for i, name := range g.nodes {
		for r, d := range g.demands[i] {
			s.free[name][r] += d
		}
		s.drawn[name] = strings.ReplaceAll(s.drawn[name], args[0].Key[:1], ".")
	}
	return s.picture(g.nodes), nil
}
