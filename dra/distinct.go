package dra

import (
	"fmt"
	"slices"
)

// distinct checks each constraint that requires a different value of an attribute for each device: every value serves
// one device.
func (at *trial) distinct() string {
	for _, b := range at.terms.constraints {
		if !b.distinct || len(b.requests) == 0 {
			continue
		}
		values, known := at.values(b.attribute)
		if !known {
			continue
		}
		wanted, g := 0, newFlow()
		needs := make([]int, 0, len(b.requests))
		for _, w := range b.requests {
			v := g.vertex()
			needs = append(needs, v)
			g.edge(source, v, at.needs[w].least)
			wanted += at.needs[w].least
		}
		for _, value := range values {
			v := g.vertex()
			g.edge(v, sink, 1)
			for i, w := range b.requests {
				if slices.ContainsFunc(at.needs[w].from, func(s int) bool { return value.devices[s] }) {
					g.edge(needs[i], v, 1)
				}
			}
		}
		if got := g.most(); got < wanted {
			return fmt.Sprintf("%s with different %s are needed: %d can be had",
				count(wanted, "device"), b.attribute, got)
		}
	}
	return ""
}
