package topologytest

import (
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// picture draws the innermost domains that hold any of the nodes, or all of them: one row a domain, one cell a node.
func (s *Script) picture(nodes []string) string {
	t := s.tree()
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
