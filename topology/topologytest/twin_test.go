package topologytest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/topologytest"
)

// scene has one node per row: its labels, outermost first and a dash for none, and the number of members that it holds.
func scene(members int, rows ...string) topologytest.Scene {
	s := topologytest.Scene{Gang: topology.Gang{Shapes: []topology.Shape{{Demand: topology.Capacity{1}}}}}
	for l := range strings.Count(rows[0], "/") + 1 {
		level := topology.Level{Name: fmt.Sprintf("l%d", l), Key: fmt.Sprintf("test/l%d", l)}
		s.Levels = append(s.Levels, level)
	}
	for i, row := range rows {
		fields := strings.FieldsFunc(row, func(r rune) bool { return r == ' ' || r == '/' })
		labels := make(map[string]string)
		for l, level := range s.Levels {
			if fields[l] != "-" {
				labels[level.Key] = fields[l]
			}
		}
		s.Nodes = append(s.Nodes, topology.Node{Name: fmt.Sprintf("n%d", i+7), Labels: labels})
		s.Free = append(s.Free, topology.Capacity{int64(fields[len(s.Levels)][0] - '0')})
	}
	s.Gang.Members = make([]topology.Member, members)
	return s
}

// The answers here are worked out by hand.
func TestBest_KnowsTheAnswer(t *testing.T) {
	// Two racks in each of two blocks: 2+1 and 2+1 nodes of one slot.
	two := []string{"v1/v1 1", "v1/v1 1", "v1/v2 1", "v2/v1 1", "v2/v1 1", "v2/v2 1"}
	for name, c := range map[string]struct {
		scene topologytest.Scene
		rule  func(g *topology.Gang, s *topologytest.Scene)
		want  int64 // -1: there is no place
		count int   // members placed, 0 for all
	}{
		"one member talks to nobody":        {scene: scene(1, two...), want: 0},
		"a ring of two crosses twice":       {scene: scene(2, two...), want: 2 * 100},
		"three in one block":                {scene: scene(3, two...), want: 3*100 + 2*100},
		"four in two racks of two blocks":   {scene: scene(4, two...), want: 4*100 + 2*100 + 2*100},
		"six everywhere":                    {scene: scene(6, two...), want: 6*100 + 4*100 + 2*100},
		"seven nowhere":                     {scene: scene(7, two...), want: -1},
		"a chain does not come back":        {scene(4, two...), func(g *topology.Gang, _ *topologytest.Scene) { g.Communication = topology.Chain }, 3*100 + 100 + 100, 0},
		"pairs: three and one beats halves": {scene(4, two...), func(g *topology.Gang, _ *topologytest.Scene) { g.Communication = topology.AllToAll }, 6*100 + 5*100 + 3*100, 0},
		"weights": {scene(4, two...), func(_ *topology.Gang, s *topologytest.Scene) {
			s.Levels[0].Weight, s.Levels[1].Weight = 400, 1
		}, 4*100 + 2*1 + 2*400, 0},
		"preferred outer level": {scene(4, two...), func(g *topology.Gang, _ *topologytest.Scene) { g.Preferred = "l0" }, 4*100 + 2*100 + 2*1600, 0},
		"preferred node":        {scene(2, two...), func(g *topology.Gang, _ *topologytest.Scene) { g.Preferred = "node" }, 2 * 1600, 0},
		"required rack":         {scene(2, two...), func(g *topology.Gang, _ *topologytest.Scene) { g.Required = "test/l1" }, 200, 0},
		"required rack too small": {scene(3, two...), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Required = "l1"
		}, -1, 0},
		"required rack, elastic": {scene(4, two...), func(g *topology.Gang, _ *topologytest.Scene) { g.Required, g.Min = "l1", 1 }, 200, 2},
		"required node":          {scene(2, "v1 3"), func(g *topology.Gang, _ *topologytest.Scene) { g.Required = "kubernetes.io/hostname" }, 0, 0},
		"required, no label":     {scene(2, "- 3"), func(g *topology.Gang, _ *topologytest.Scene) { g.Required = "l0" }, -1, 0},
		"one per node":           {scene(2, "v1 3", "v1 3"), func(g *topology.Gang, _ *topologytest.Scene) { g.PerNode = 1 }, 200, 0},
		"spread members":         {scene(3, "v1 3", "v1 3", "v2 1"), func(g *topology.Gang, _ *topologytest.Scene) { g.Spread = topology.Spread{Max: 2, Level: "l0"} }, 400, 0},
		"segments of two": {scene(4, two...), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Segment = topology.Segment{Size: 2, Level: "l1"}
		}, 4*100 + 2*100 + 2*100, 0},
		"segments of three need three in a rack": {scene(4, two...), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Segment = topology.Segment{Size: 3, Level: "l1"}
		}, -1, 0},
		"segments of three in blocks": {scene(4, two...), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Segment = topology.Segment{Size: 3, Level: "l0"}
		}, 4*100 + 3*100 + 2*100, 0},
		"equal segments, elastic": {scene(6, "v1 2", "v1 2", "v2 1"), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Segment, g.Min = topology.Segment{Size: 2, Level: "l0", Equal: true}, 2
		}, 200, 4},
		"unequal segments, elastic": {scene(6, "v1 2", "v1 2", "v2 1"), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Segment, g.Min = topology.Segment{Size: 2, Level: "l0"}, 2
		}, 500, 5},
		"spread segments": {scene(4, "v1 2", "v1 2", "v2 2"), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Segment, g.Spread = topology.Segment{Size: 2, Level: "node"}, topology.Spread{Max: 1, Level: "l0"}
		}, 400, 0},
		"spare node": {scene(2, "v1 1", "v1 1", "v2 1", "v2 1", "v2 1"), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Spares = topology.Spares{Nodes: 1, Level: "l0"}
		}, 200, 0},
		"spares everywhere": {scene(4, "v1 1", "v1 1", "v2 1", "v2 1", "v2 1"), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Spares = topology.Spares{Nodes: 1, Level: "l0"}
		}, -1, 0},
		"a spare could hold a member": {scene(1, "v1 1", "v1 0"), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Spares = topology.Spares{Nodes: 1, Level: "l0"}
		}, -1, 0},
		"spares are for the placed": {scene(2, "v1 0", "v1 1"), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Members[0].Placed = true
			g.Spares = topology.Spares{Nodes: 1, Level: "l0"}
		}, 200, 0},
		"placed members stay": {scene(3, "v1 2", "v1 0", "v2 1", "v2 1"), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Members[1].Placed, g.Members[1].Node = true, 1
		}, 200, 0},
		"a placed member's segment": {scene(2, "v1 2", "v2 0", "v2 1"), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Members[1].Placed, g.Members[1].Node = true, 1
			g.Segment = topology.Segment{Size: 2, Level: "l0"}
		}, 200, 0},
		"placed members count for the node": {scene(2, "v1 2", "v2 1"), func(g *topology.Gang, _ *topologytest.Scene) {
			g.Members[1].Placed, g.PerNode = true, 1
		}, 400, 0},
		"no label: not known to be shared": {scene: scene(2, "- 1", "- 1"), want: 400},
		"no label but the next one":        {scene: scene(2, "-/v1 1", "-/v1 1"), want: 200},
		"accelerators beside the network": {scene(2, "v1/v1 1", "v2/v1 1"), func(_ *topology.Gang, s *topologytest.Scene) {
			s.Levels[1].Accelerator = true
		}, 400, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.scene
			if c.rule != nil {
				c.rule(&s.Gang, &s)
			}
			cost, nodes, ok := s.Best()
			if !ok {
				cost = -1
			}
			if cost != c.want || ok && c.count > 0 && len(nodes) != c.count {
				t.Errorf("%s\nBest = %d on %v, want %d", s, cost, nodes, c.want)
			}
		})
	}
}

// Best checks each rule early and prunes assignments that cost too much; this test does neither.
func TestBest_AgreesWithCheck(t *testing.T) {
	tried, found := 0, 0
	for seed := range uint64(6000) {
		choose := rand.New(rand.NewPCG(seed, 1)).IntN
		options := topologytest.Options{Shapes: 1 + choose(3), Rules: topologytest.Rules(), Accelerator: choose(4) == 0}
		s := topologytest.Draw(options, choose)
		ways := 1
		for range s.Gang.Members {
			ways *= len(s.Nodes)
		}
		if ways > 1300 {
			continue
		}
		tried++
		want, ok := dumbest(s)
		got, nodes, gotOK := s.Best()
		if got != want || ok != gotOK {
			t.Fatalf("%s\nBest = %d, %t on %v; all that pass Check: %d, %t", s, got, gotOK, nodes, want, ok)
		}
		if ok {
			found++
		}
	}
	t.Logf("%d scenes, %d with a place", tried, found)
}

func dumbest(s topologytest.Scene) (least int64, ok bool) {
	for count := len(s.Gang.Members); count >= max(s.Gang.Min, 1) && !ok; count-- {
		for at := range assignments(len(s.Nodes), count) {
			if s.Check(at) != nil {
				continue
			}
			if cost := s.CostOf(at); !ok || cost < least {
				least, ok = cost, true
			}
		}
	}
	return least, ok
}

// assignments yields every sequence of nodes.
func assignments(nodes, count int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		at := make([]int, count)
		for {
			if !yield(at) {
				return
			}
			i := slices.IndexFunc(at, func(n int) bool { return n+1 < nodes })
			if i < 0 {
				return
			}
			clear(at[:i])
			at[i]++
		}
	}
}

func TestCheck_SaysWhatIsWrong(t *testing.T) {
	s := scene(3, "v1 3", "v1 1", "v2 1", "- 1")
	for want, c := range map[string]struct {
		at   []int
		rule func(g *topology.Gang)
	}{
		"":                                      {[]int{0, 0, 1}, nil},
		"2 of 3 members are placed":             {[]int{0, 0}, nil},
		"which does not exist":                  {[]int{0, 0, 4}, nil},
		"member 2 overfills n8":                 {[]int{0, 1, 1}, nil},
		"which bars it":                         {[]int{0, 0, 1}, func(g *topology.Gang) { g.Shapes[0].Barred = []string{"", "x", "", ""} }},
		"which has no l0":                       {[]int{0, 0, 3}, func(g *topology.Gang) { g.Required = "l0" }},
		"members in one l0 are in l0/v1 and in": {[]int{0, 0, 2}, func(g *topology.Gang) { g.Required = "l0" }},
		"at most 2 may be":                      {[]int{0, 0, 0}, func(g *topology.Gang) { g.PerNode = 2 }},
		"segment 0: members":                    {[]int{0, 2, 0}, func(g *topology.Gang) { g.Segment = topology.Segment{Size: 2, Level: "l0"} }},
		"more than 2 are in l0/v1":              {[]int{0, 0, 1}, func(g *topology.Gang) { g.Spread = topology.Spread{Max: 2, Level: "l0"} }},
		"v2 has 0 spares":                       {[]int{0, 0, 2}, func(g *topology.Gang) { g.Spares = topology.Spares{Nodes: 1, Level: "l0"} }},
		"runs on n8 and is moved":               {[]int{0, 0, 0}, func(g *topology.Gang) { g.Members[2].Placed, g.Members[2].Node = true, 1 }},
		"2 members leave a short segment":       {[]int{0, 0}, func(g *topology.Gang) { g.Min, g.Segment = 1, topology.Segment{Size: 3, Level: "l0", Equal: true} }},
		"2 of 3 members are placed, at least":   {[]int{0, 0}, func(g *topology.Gang) { g.Min = 3 }},
	} {
		broken := s.Clone()
		if c.rule != nil {
			c.rule(&broken.Gang)
		}
		err := broken.Check(c.at)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check(%v) = %v, want %q", c.at, err, want)
		}
	}
}

func TestTidiest_KnowsTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		scene topologytest.Scene
		want  []int
	}{
		"the node that it fills":              {scene(2, "v1 3", "v1 2", "v2 3"), []int{0, 2, 0}},
		"of equal nodes the one in a small":   {scene(2, "v1 3", "v1 2", "v2 2"), []int{0, 0, 2}},
		"of equal everything the first":       {scene(2, "v2 2", "v1 2", "v1 2", "v2 2"), []int{0, 2, 0, 0}},
		"the smaller rack":                    {scene(2, "v1 1", "v1 1", "v1 1", "v2 1", "v2 1"), []int{0, 0, 0, 1, 1}},
		"the first nodes of the first rack":   {scene(2, "v2 1", "v2 1", "v2 1", "v1 1", "v1 1", "v1 1"), []int{0, 0, 0, 1, 1, 0}},
		"large nodes stay whole":              {scene(3, "v1 3", "v1 2", "v1 1"), []int{3, 0, 0}},
		"large nodes stay whole if more do":   {scene(4, "v1 3", "v1 2", "v1 2"), []int{0, 2, 2}},
		"if one must be used, it is used up":  {scene(4, "v1 3", "v1 2", "v1 1"), []int{3, 0, 1}},
		"large racks stay whole":              {scene(4, "v1 1", "v1 1", "v1 1", "v2 1", "v2 1", "v3 1", "v3 1"), []int{0, 0, 0, 1, 1, 1, 1}},
		"of equal racks the first is used up": {scene(3, "v1 1", "v1 1", "v2 1", "v2 1", "v3 1"), []int{1, 1, 0, 0, 1}},
		"of equal racks the first takes most": {scene(3, "v1 1", "v1 1", "v2 1", "v2 1"), []int{1, 1, 1, 0}},
		"unlabelled nodes come last":          {scene(2, "- 1", "v1 1", "- 1"), []int{1, 1, 0}},
	} {
		if got, ok := c.scene.Tidiest(); !ok || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
