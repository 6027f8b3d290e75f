package topology_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/topologytest"
)

// request is a pod set's request to Kueue's topology-aware scheduling.
type request int

const (
	requiredIn request = iota
	preferredIn
	unconstrained
)

func (r request) String() string { return [...]string{"required", "preferred", "unconstrained"}[r] }

// podSet is so many pods that ask for a level, given by its depth, and the fleet they are for. The scene's gang asks
// for the same as far as it can: an unconstrained pod set has no preference for nodes, and a gang without rules does.
type podSet struct {
	topologytest.Scene
	pods, level int
	request     request
}

// newPodSet is one for a fleet that has no nodes yet.
func newPodSet(levels []topology.Level, pods, level int, r request) podSet {
	s := podSet{topologytest.Scene{Levels: levels, Gang: job(pods)}, pods, level, r}
	name := topology.LevelNode
	if level < len(levels) {
		name = levels[level].Name
	}
	switch r {
	case requiredIn:
		s.Gang.Required = name
	case preferredIn:
		s.Gang.Preferred = name
	case unconstrained:
	}
	return s
}

// add appends a node with a value for each level, and with room for so many pods.
func (s *podSet) add(name string, values []string, room int64) {
	labels := map[string]string{}
	for l, value := range values {
		labels[s.Levels[l].Key] = value
	}
	s.Nodes = append(s.Nodes, topology.Node{Name: name, Labels: labels})
	s.Free = append(s.Free, topology.Capacity{room})
}

// kueueLevels are the outer levels of the fleets below.
func kueueLevels(names ...string) []topology.Level {
	levels := make([]topology.Level, len(names))
	for i, name := range names {
		levels[i] = topology.Level{Name: name, Key: "test/" + name}
	}
	return levels
}

// The no-slice cases of Kueue's own tests (pkg/cache/scheduler/tas_cache_test.go), as facts: the number of pods that
// each domain of the innermost level has room for, and the number that Kueue assigns to it. A domain of that level is a
// node here, whatever its name in Kueue: with topologies that end at racks Kueue leaves the nodes to the scheduler.
func TestKueue_Cases(t *testing.T) {
	const (
		host = "b1/r1/x3=1 b1/r2/x1=1 b1/r2/x5=1 b1/r2/x6=1 b2/r1/x2=1 b2/r2/x4=2"
		rack = "b1/r1=1 b1/r2=3 b2/r1=1 b2/r2=2"
		tree = "b1/r1/x3=1 b1/r1/x5=1 b1/r2/x1=1 b1/r2/x6=1 b2/r1/x2=1 b2/r1/x4=1 b2/r2/x7=1 b2/r2/x8=1"
		wide = "b1/r1/x1=1 b1/r1/x3=4 b1/r1/x5=1 b2/r1/x2=1 b2/r1/x6=2"
		many = "b1/r1/x3=2 b1/r2/x5=2 b1/r3/x1=1 b1/r3/x2=1 b1/r3/x4=1 b1/r3/x6=1"
	)
	for _, c := range []struct {
		name, fleet string
		request     request
		// level is the depth of the requested level, blocks being 0.
		level, count int
		// want is Kueue's assignment; "" if it finds none.
		want string
		// ours is our assignment if it is another one. It never costs more: for one pod that is the node whose block
		// has least room besides, where Kueue takes the first by name.
		ours string
		// leastFree is set where Kueue does not use BestFit, but takes the fullest nodes first.
		leastFree bool
	}{
		{"host required: one pod", host, requiredIn, 2, 1, "b1/r1/x3=1", "b2/r1/x2=1", false},
		{"rack required: one pod, smallest sufficient rack", rack, requiredIn, 1, 1, "b1/r1=1", "b2/r1=1", false},
		{"rack required: two pods, smallest sufficient rack", rack, requiredIn, 1, 2, "b2/r2=2", "", false},
		{"rack required: three pods, one rack", rack, requiredIn, 1, 3, "b1/r2=3", "", false},
		{"rack required: four pods, not enough in any rack", rack, requiredIn, 1, 4, "", "", false},
		{"rack required: room by memory", "b1/r1=10 b1/r2=30 b2/r1=10 b2/r2=40", requiredIn, 1, 4, "b1/r1=4", "", false},
		{"block required: one pod, smallest sufficient block and rack", rack, requiredIn, 0, 1, "b2/r1=1", "", false},
		{"block required: four pods, over two racks", rack, requiredIn, 0, 4, "b1/r1=1 b1/r2=3", "", false},
		{"block required: four pods, one per host", tree, requiredIn, 0, 4, "b1/r1/x3=1 b1/r1/x5=1 b1/r2/x1=1 b1/r2/x6=1", "", false},
		{"block required: five pods, not enough in any block", rack, requiredIn, 0, 5, "", "", false},
		{"block required: a pod that is larger than any host", "b1/r1=0 b1/r2=0 b2/r1=0 b2/r2=0", requiredIn, 0, 1, "", "", false},
		{"block required: fewest racks before fewest hosts", many, requiredIn, 0, 4, "b1/r3/x1=1 b1/r3/x2=1 b1/r3/x4=1 b1/r3/x6=1", "", false},
		{"block required: the host that holds all", "b1/r1/x1=1 b1/r1/x3=2 b1/r1/x5=1", requiredIn, 0, 2, "b1/r1/x3=2", "", false},
		{"rack preferred: climbs to one block", rack, preferredIn, 1, 4, "b1/r1=1 b1/r2=3", "", false},
		{"rack preferred: climbs over all blocks", rack, preferredIn, 1, 6, "b1/r1=1 b1/r2=3 b2/r2=2", "", false},
		{"block preferred: over two blocks", rack, preferredIn, 0, 6, "b1/r1=1 b1/r2=3 b2/r2=2", "", false},
		{"block preferred: more than there is", rack, preferredIn, 0, 10, "", "", false},
		{"block preferred: largest first, the rest where it fits best", "b1=2 b2=1 b3=4", preferredIn, 0, 5, "b2=1 b3=4", "", false},
		{"unconstrained: one pod, smallest host", host, unconstrained, 2, 1, "b1/r1/x3=1", "b2/r1/x2=1", false},
		{
			"unconstrained: scattered by least free capacity, though one rack holds all", wide, unconstrained, 2, 6,
			"b1/r1/x1=1 b1/r1/x3=1 b1/r1/x5=1 b2/r1/x2=1 b2/r1/x6=2", "b1/r1/x1=1 b1/r1/x3=4 b1/r1/x5=1", true,
		},
		{"host required: nine pods, the host takes eight more", "x3=8", requiredIn, 0, 9, "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			depth := strings.Count(strings.Fields(c.fleet)[0], "/")
			s := newPodSet(kueueLevels("block", "rack")[:depth], c.count, c.level, c.request)
			for node := range strings.FieldsSeq(c.fleet) {
				path, room, _ := strings.Cut(node, "=")
				values := strings.Split(path, "/")
				n, err := strconv.ParseInt(room, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				s.add(path, values[:depth], n)
			}
			p, short, err := s.Place()
			if err != nil || (short != nil) != (c.want == "") {
				t.Fatalf("%v %v, want %q", short, err, c.want)
			}
			emulated := newBestFit(s.Scene).place(s.pods, s.level, s.request)
			if c.want == "" {
				if emulated != nil {
					t.Errorf("the emulation takes %v", s.Names(emulated))
				}
				return
			}
			kueue := assigned(t, s.Scene, c.want)
			if err := s.Check(kueue); err != nil {
				t.Fatalf("Kueue's assignment: %v", err)
			}
			if !c.leastFree && !slices.Equal(emulated, kueue) {
				t.Errorf("the emulation takes %v, Kueue %v", s.Names(emulated), s.Names(kueue))
			}
			if want := assigned(t, s.Scene, cmp.Or(c.ours, c.want)); !slices.Equal(p.Nodes, want) {
				t.Errorf("%v, want %v", s.Names(p.Nodes), s.Names(want))
			}
			if ours, theirs := s.CostOf(p.Nodes), s.CostOf(kueue); ours > theirs {
				t.Errorf("%v costs %d, Kueue's %v %d", s.Names(p.Nodes), ours, s.Names(kueue), theirs)
			}
		})
	}
}

// assigned reads node=pods pairs: the node of each rank.
func assigned(t *testing.T, s topologytest.Scene, pairs string) []int {
	t.Helper()
	var nodes []int
	for pair := range strings.FieldsSeq(pairs) {
		name, pods, _ := strings.Cut(pair, "=")
		n, err := strconv.Atoi(pods)
		at := slices.IndexFunc(s.Nodes, func(node topology.Node) bool { return node.Name == name })
		if err != nil || at < 0 {
			t.Fatalf("no assignment: %s", pair)
		}
		nodes = append(nodes, slices.Repeat([]int{at}, n)...)
	}
	return nodes
}

// bestFit emulates Kueue's algorithm of that name for one pod set without slices: domains by free capacity, the largest
// first; as many of them as it takes, the last one being the smallest that holds the rest; level by level, each time
// among all children of the domains chosen before.
type bestFit struct {
	// at[l][node] is the domain of the node at level l, outermost first; the last level is that of nodes.
	at [][]int
	// free is the number of pods that each node has room for.
	free []int
}

// newBestFit reads a scene whose nodes are in path order.
func newBestFit(s topologytest.Scene) bestFit {
	b := bestFit{}
	for l := range len(s.Levels) + 1 {
		group, _ := s.Groups(l)
		b.at = append(b.at, group)
	}
	for n := range s.Nodes {
		b.free = append(b.free, s.Room(0, n, len(s.Gang.Members)*len(s.Nodes)))
	}
	return b
}

// portion is a domain and the number of pods that it holds, or has room for.
type portion struct{ domain, pods int }

// domains are those of the level whose parent was chosen, all of them if none was: the largest first.
func (b bestFit) domains(level int, chosen []portion) []portion {
	room := map[int]int{}
	for n, free := range b.free {
		inside := func(p portion) bool { return p.domain == b.at[level-1][n] }
		if chosen == nil || slices.ContainsFunc(chosen, inside) {
			room[b.at[level][n]] += free
		}
	}
	var all []portion
	for _, domain := range slices.Sorted(maps.Keys(room)) {
		all = append(all, portion{domain, room[domain]})
	}
	slices.SortStableFunc(all, func(x, y portion) int { return cmp.Compare(y.pods, x.pods) })
	return all
}

// fewest takes domains for so many pods from a list sorted by size; nil if they do not suffice.
func fewest(sorted []portion, pods int) []portion {
	var taken []portion
	for i, d := range sorted {
		if d.pods < pods {
			taken = append(taken, d)
			pods -= d.pods
			continue
		}
		for _, smaller := range sorted[i:] {
			if smaller.pods >= pods && smaller.pods < d.pods {
				d = smaller
			}
		}
		return append(taken, portion{d.domain, pods})
	}
	return nil
}

// place returns the node of each pod in path order, nil if Kueue does not admit them.
func (b bestFit) place(pods, level int, r request) []int {
	last := len(b.at) - 1
	if r == unconstrained {
		level = last
	}
	all := b.domains(level, nil)
	for r == preferredIn && level > 0 && all[0].pods < pods {
		level--
		all = b.domains(level, nil)
	}
	if r == requiredIn && all[0].pods < pods {
		return nil
	}
	chosen := fewest(all, pods)
	for ; chosen != nil && level < last; level++ {
		chosen = fewest(b.domains(level+1, chosen), pods)
	}
	var nodes []int
	slices.SortFunc(chosen, func(x, y portion) int { return cmp.Compare(x.domain, y.domain) })
	for _, node := range chosen {
		nodes = append(nodes, slices.Repeat([]int{node.domain}, node.pods)...)
	}
	return nodes
}

// drawKueue draws a fleet of one to three levels further out than nodes, with every label, partly in use, in path
// order. Nodes have room for so many pods if they are empty.
func drawKueue(r *rand.Rand, room int) podSet {
	levels := kueueLevels("zone", "block", "rack")[r.IntN(3):]
	for l := range levels {
		levels[l].Weight = []int64{0, 0, 25, 400}[r.IntN(4)]
	}
	pods := 1 + r.IntN([]int{4, 12, 30}[r.IntN(3)])
	s := newPodSet(levels, pods, r.IntN(len(levels)+1), request(r.IntN(3)))
	s.fill(nil, room, r)
	return s
}

// fill adds the domains below a path.
func (s *podSet) fill(path []string, room int, r *rand.Rand) {
	if len(path) == len(s.Levels) {
		for range 2 + r.IntN(5) {
			s.add(fmt.Sprintf("n%d", len(s.Nodes)), path, int64(r.IntN(room+1)))
		}
		return
	}
	for i := range 2 + r.IntN(3) {
		s.fill(append(slices.Clone(path), fmt.Sprintf("d%d", i)), room, r)
	}
}

// gaps is the excess cost of Kueue's assignments over ours.
type gaps struct {
	placed, cheaper, free int
	sum, most             float64
}

// add counts a pair of costs. Where ours costs nothing there is no ratio.
func (g *gaps) add(ours, kueue int64) {
	g.placed++
	switch {
	case ours == 0 && kueue > 0:
		g.free++
	case kueue > ours:
		g.cheaper++
		gap := float64(kueue-ours) / float64(ours)
		g.sum += gap
		g.most = max(g.most, gap)
	}
}

func (g *gaps) String() string {
	return fmt.Sprintf("%d placed, ours cheaper for %d (mean gap %.2f%% of all, most %.0f%%) and free for %d",
		g.placed, g.cheaper, 100*g.sum/float64(max(g.placed-g.free, 1)), 100*g.most, g.free)
}

// Place never costs more than Kueue's assignment, and finds a place exactly where Kueue does. How much less it costs
// says little of a real fleet: these are small, half full at random, and the weights of their levels differ much.
func TestKueue_NeverCheaper(t *testing.T) {
	const scenes = 2000
	var wrong faults
	found := make(map[string]*gaps)
	refused := make(map[string]int)
	for seed := range uint64(scenes) {
		room, sort := 1, "whole nodes"
		if seed%2 == 1 {
			room, sort = 4, "shared nodes"
		}
		s := drawKueue(rand.New(rand.NewPCG(seed, 17)), room)
		sort = s.request.String() + ", " + sort
		kueue := newBestFit(s.Scene).place(s.pods, s.level, s.request)
		p, short, err := s.Place()
		if err != nil {
			t.Fatalf("%s\n%v", s, err)
		}
		if (short != nil) != (kueue == nil) {
			wrong.add("only one finds a place", s.Scene, "%v %v, Kueue %v", s.Names(p.Nodes), short, s.Names(kueue))
			continue
		}
		if kueue == nil {
			refused[sort]++
			continue
		}
		if err := s.Check(kueue); err != nil {
			wrong.add("the emulation breaks a rule", s.Scene, "%v: %v", s.Names(kueue), err)
			continue
		}
		ours, theirs := s.CostOf(p.Nodes), s.CostOf(kueue)
		if ours > theirs || ours != p.Cost {
			wrong.add("Kueue is cheaper", s.Scene, "%v costs %d (%d), Kueue's %v %d",
				s.Names(p.Nodes), ours, p.Cost, s.Names(kueue), theirs)
		}
		if found[sort] == nil {
			found[sort] = new(gaps)
		}
		found[sort].add(ours, theirs)
	}
	wrong.report(t)
	for _, sort := range slices.Sorted(maps.Keys(found)) {
		t.Logf("%s: %s", sort, found[sort])
		if found[sort].placed < 100 || refused[sort] < 5 {
			t.Errorf("%s: too few scenes to tell: %d placed, %d refused", sort, found[sort].placed, refused[sort])
		}
	}
	t.Logf("refused by both: %s", tally(refused))
}
