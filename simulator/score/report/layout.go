package report

import (
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// layoutData holds the places of nodes on the map: sections of racks of nodes. A rack is a domain of the innermost
// level whose domains have several nodes, a section one of the level outside of it.
type layoutData struct {
	Nodes []string `json:"nodes"`
	// Squares is the number of a node, Per the number of accelerators that one stands for.
	Squares []int   `json:"squares"`
	Per     []int64 `json:"per"`
	// Racks has the rack of each node, RackNames and RackSections are of racks.
	Racks        []int    `json:"racks"`
	RackNames    []string `json:"rackNames"`
	RackSections []int    `json:"rackSections"`
	Sections     []string `json:"sections"`
	RackLevel    string   `json:"rackLevel"`
	SectionLevel string   `json:"sectionLevel"`
	// Closed are the nodes that nothing may start on.
	Closed []int `json:"closed"`
}

// laid puts the nodes of a scenario in their places.
func laid(s *scenario.Scenario, nodes []node) layoutData {
	d := layoutData{Racks: make([]int, len(nodes))}
	rack, section := shown(s.Ledger.Tree, len(nodes))
	levels := s.Ledger.Tree.Levels()
	if rack >= 0 {
		d.RackLevel = levels[rack].Name
	}
	if section >= 0 {
		d.SectionLevel = levels[section].Name
	}
	racks, sections := make(map[string]int), make(map[string]int)
	for i := range nodes {
		d.Nodes = append(d.Nodes, s.Ledger.Tree.Node(i))
		d.Squares, d.Per = append(d.Squares, nodes[i].squares), append(d.Per, nodes[i].per)
		if s.Closed[i] {
			d.Closed = append(d.Closed, i)
		}
		of, path := place(s.Ledger.Tree, i, section), place(s.Ledger.Tree, i, rack)
		if _, known := sections[of]; !known {
			sections[of] = len(d.Sections)
			d.Sections = append(d.Sections, of)
		}
		at, known := racks[of+"\x00"+path]
		if !known {
			at = len(d.RackNames)
			racks[of+"\x00"+path] = at
			d.RackNames = append(d.RackNames, path)
			d.RackSections = append(d.RackSections, sections[of])
		}
		d.Racks[i] = at
	}
	return d
}

// place is the last part of the path of a node's domain, empty for one that lacks the label or for no level.
func place(t *topology.Tree, node, level int) string {
	if level < 0 {
		return ""
	}
	domain, ok := t.Domain(node, level)
	if !ok {
		return "no " + t.Levels()[level].Name
	}
	return domain.Path[len(domain.Path)-1]
}

// shown are the levels of racks and sections, -1 for none: the innermost level with at least two nodes to a domain in
// the mean, and the next one outside of it that has fewer domains but more than one.
func shown(t *topology.Tree, nodes int) (rack, section int) {
	domains := make([]int, len(t.Levels()))
	for level := range domains {
		names := make(map[string]struct{})
		for i := range nodes {
			if d, ok := t.Domain(i, level); ok {
				names[strings.Join(d.Path, "\x00")] = struct{}{}
			}
		}
		domains[level] = len(names)
	}
	rack, section = -1, -1
	for level, n := range slices.Backward(domains) {
		switch {
		case rack < 0 && n > 0 && n*2 <= nodes:
			rack = level
		case rack >= 0 && section < 0 && n > 1 && n < domains[rack]:
			section = level
		}
	}
	return rack, section
}
