package contention

import (
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"strconv"

	"github.com/lockstep-project/lockstep/topology"
)

// Question sums up the request of a gang, without the names: gangs with the same question get the same answer. A gang
// with members that run has a question of its own, and so have gangs that request other resources which no node offers:
// these share a column, and become available one by one.
func Question(g topology.Gang) string {
	h := fnv.New128a()
	word := func(s string) { _, _ = h.Write(append([]byte(s), 0)) } // never fails
	number := func(n int64) { _, _ = h.Write(binary.AppendVarint(nil, n)) }
	for _, s := range []string{g.Required, g.Preferred, g.Segment.Level, g.Spread.Level, g.Spares.Level, g.TPU} {
		word(s)
	}
	for _, n := range []int{
		g.Min, g.Segment.Size, g.Spread.Max, g.Spares.Nodes, g.PerNode, int(g.Communication), len(g.Shapes),
		g.Box[0], g.Box[1], g.Box[2],
	} {
		number(int64(n))
	}
	word(strconv.FormatBool(g.Segment.Equal))
	for _, s := range g.Shapes {
		number(int64(len(s.Demand)))
		for _, d := range s.Demand {
			number(d)
		}
		number(int64(len(s.Barred)))
		for _, rule := range s.Barred {
			number(int64(min(len(rule), 1)))
		}
	}
	for _, resource := range g.Resources {
		word(resource)
	}
	for _, m := range g.Members {
		number(int64(m.Shape))
		word(strconv.FormatBool(m.Late))
		if m.Placed {
			word(g.Name)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
