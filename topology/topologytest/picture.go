package topologytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// gang reads the arguments of place.
func (s *Script) gang(args []Arg) (topology.Gang, error) {
	g := topology.Gang{Name: args[0].Key}
	t := topology.NewTree(s.levels, s.nodes)
	var barred []string
	if len(s.rules) > 0 {
		barred = make([]string, t.Len())
		for i := range barred {
			barred[i] = s.rules[t.Node(i)]
		}
	}
	for i, a := range args[1:] {
		if a.Key == "require" {
			g.Required = a.Value
			continue
		}
		if slices.Contains(s.resources, a.Key) {
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

func (s *Script) place(args []Arg) (string, error) {
	g, err := s.gang(args)
	if err != nil {
		return "", err
	}
	t := topology.NewTree(s.levels, s.nodes)
	free := make([]topology.Capacity, t.Len())
	for i := range free {
		free[i] = s.free[t.Node(i)]
	}
	p, short := topology.Place(t, free, g)
	if short != nil {
		return g.Name + " " + refusal(short), nil
	}
	var held placedGang
	for m, n := range p.Nodes {
		demand := g.Shapes[g.Members[m].Shape].Demand
		held.nodes = append(held.nodes, t.Node(n))
		held.demands = append(held.demands, demand)
		s.take(t.Node(n), demand, g.Name[:1])
	}
	s.gangs[g.Name] = held

	var b strings.Builder
	fmt.Fprintf(&b, "%s -> %s, using", g.Name, p.Within)
	for l, used := range p.Used {
		fmt.Fprintf(&b, " %s=%d", s.levels[l].Name, used)
	}
	for from := 0; from < len(g.Members); {
		to := from + 1
		for to < len(g.Members) && (p.Nodes[to] == p.Nodes[to-1] || p.Nodes[to] == p.Nodes[to-1]+1) {
			to++
		}
		ranks := span(strconv.Itoa(from), strconv.Itoa(to-1))
		fmt.Fprintf(&b, "\n  ranks %s on %s", ranks, span(held.nodes[from], held.nodes[to-1]))
		from = to
	}
	return b.String() + "\n" + s.picture(held.nodes), nil
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

// picture draws the innermost domains that hold any of the nodes, or all of them: one row a domain, one cell a node.
func (s *Script) picture(nodes []string) string {
	t := topology.NewTree(s.levels, s.nodes)
	var rows, cells []string
	shown := nodes == nil
	last := ""
	flush := func() {
		if shown && len(cells) > 0 {
			rows = append(rows, last+": "+strings.Join(cells, "  "))
		}
		cells, shown = nil, nodes == nil
	}
	for i := range t.Len() {
		name := t.Node(i)
		at := topology.Domain{}
		for l := range s.levels {
			if d, ok := t.Domain(i, l); ok {
				at = d
			}
		}
		if at.String() != last {
			flush()
			last = at.String()
		}
		cells = append(cells, strings.TrimPrefix(name, strings.Join(at.Path, "-")+"-")+" "+s.drawn[name])
		shown = shown || slices.Contains(nodes, name)
	}
	flush()
	return strings.Join(rows, "\n")
}
