package topology_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/topologytest"
)

// each holds a property against scenes drawn from two numbers that rapid draws. Drawing every choice would shrink
// better, but rapid favors small choices so much that few gangs would need more than one node, and small numbers so
// much that one scene for each would often be the same; scenes are small enough to be read unshrunk.
func each(t *testing.T, options topologytest.Options, property func(*rapid.T, topologytest.Scene, *rand.Rand)) {
	t.Helper()
	const scenes = 30
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64()
		r := rand.New(rand.NewPCG(seed.Draw(t, "seed"), seed.Draw(t, "stream")))
		for range scenes {
			mixed := options
			mixed.Accelerator = options.Accelerator && r.IntN(4) == 0
			property(t, topologytest.Draw(mixed, r.IntN), r)
		}
	})
}

// anything is scenes of any kind.
func anything() topologytest.Options {
	return topologytest.Options{Shapes: 3, Rules: topologytest.Rules(), Accelerator: true}
}

// place asks for a place; false if there is none, so that promises about placements are not tested on refusals.
func place(t *rapid.T, s topologytest.Scene) (topology.Placement, bool) {
	p, short, err := s.Place()
	if err != nil && !refusable(err) {
		t.Fatalf("%s\n%v", s, err)
	}
	return p, short == nil && err == nil
}

// refusable reports whether the error is one that drawn scenes may meet: rules that no fleet of this form could
// satisfy, or that are not combined.
func refusable(err error) bool {
	return errors.Is(err, topology.ErrTooLarge) || errors.Is(err, topology.ErrCombination) ||
		errors.Is(err, topology.ErrUnequal)
}

// All members together, each node by itself: a sum per resource, and no other check.
func TestP1_TakesOnlyWhatIsFree(t *testing.T) {
	each(t, anything(), func(t *rapid.T, s topologytest.Scene, _ *rand.Rand) {
		p, ok := place(t, s)
		if !ok {
			return
		}
		taken := make([]map[int]int64, len(s.Nodes))
		for rank, node := range p.Nodes {
			m := s.Gang.Members[rank]
			if m.Placed {
				continue // Free already excludes its demand
			}
			shape := s.Gang.Shapes[m.Shape]
			if shape.Barred != nil && shape.Barred[node] != "" {
				t.Fatalf("%s\n%s is barred from %s: %s", s, m.Name, s.Nodes[node].Name, shape.Barred[node])
			}
			if taken[node] == nil {
				taken[node] = make(map[int]int64)
			}
			for resource, amount := range shape.Demand {
				taken[node][resource] += amount
			}
		}
		for node, amounts := range taken {
			for resource, amount := range amounts {
				free := int64(0)
				if resource < len(s.Free[node]) {
					free = s.Free[node][resource]
				}
				if amount > max(free, 0) {
					t.Fatalf(
						"%s\ntakes %d of resource %d of %s, %d is free",
						s,
						amount,
						resource,
						s.Nodes[node].Name,
						free,
					)
				}
			}
		}
	})
}

func TestP2_PlacementsKeepEveryRule(t *testing.T) {
	each(t, anything(), func(t *rapid.T, s topologytest.Scene, _ *rand.Rand) {
		p, ok := place(t, s)
		if !ok {
			return
		}
		if err := s.Check(p.Nodes); err != nil {
			t.Fatalf("%s\nplaced on %v: %v", s, s.Names(p.Nodes), err)
		}
	})
}

// The levels and the cost in a placement are those of its nodes.
func TestPlacement_LevelsAddUp(t *testing.T) {
	each(t, anything(), func(t *rapid.T, s topologytest.Scene, _ *rand.Rand) {
		p, ok := place(t, s)
		if !ok {
			return
		}
		weights := s.Weights()
		if len(p.Levels) != len(weights) {
			t.Fatalf("%s\n%d levels are reported, not %d", s, len(p.Levels), len(weights))
		}
		var cost int64
		for l, use := range p.Levels {
			groups := make(map[string]bool)
			for _, n := range p.Nodes {
				group, _ := s.Group(n, l)
				groups[group] = true
			}
			if use.Domains != len(groups) || use.Least < 1 || use.Least > use.Domains {
				t.Fatalf("%s\n%v uses %d domains of level %d, not %+v", s, s.Names(p.Nodes), len(groups), l, use)
			}
			if want := weights[l] * int64(s.Crossings(p.Nodes, l)); use.Cost != want {
				t.Fatalf("%s\n%v costs %d at level %d, not %d", s, s.Names(p.Nodes), want, l, use.Cost)
			}
			cost += use.Cost
		}
		if p.Cost != cost || p.Bound > p.Cost || p.Gang != s.Gang.Name {
			t.Fatalf("%s\n%+v: the levels cost %d", s, p, cost)
		}
	})
}

func TestPlacement_WithinIsTheSmallestDomain(t *testing.T) {
	options := topologytest.Options{Shapes: 2, Rules: topologytest.Rules()}
	each(t, options, func(t *rapid.T, s topologytest.Scene, _ *rand.Rand) {
		p, ok := place(t, s)
		if !ok {
			return
		}
		want := topology.Domain{}
		inTree, ledger, order := s.InTree()
		for l := range s.Levels {
			first, ok := ledger.Tree.Domain(slices.Index(order, p.Nodes[0]), l)
			for _, n := range p.Nodes {
				d, in := ledger.Tree.Domain(slices.Index(order, n), l)
				ok = ok && in && slices.Equal(d.Path, first.Path)
			}
			if ok {
				want = first
			}
		}
		if diff := cmp.Diff(want, p.Within); diff != "" {
			t.Fatalf("%s\nplaced on %v, within (-want +got):\n%s", inTree, s.Names(p.Nodes), diff)
		}
	})
}

// Ranks in path order make a ring cross a level once per domain used.
func TestP6_RanksFollowThePath(t *testing.T) {
	options := topologytest.Options{Shapes: 1, Rules: []topologytest.Rule{
		topologytest.Required, topologytest.Spread, topologytest.PerNode, topologytest.Elastic,
		topologytest.Spares, topologytest.Preferred, topologytest.Weights,
	}}
	each(t, options, func(t *rapid.T, s topologytest.Scene, _ *rand.Rand) {
		if r := row(s); r != oneKind && r != oneKindSpared {
			return
		}
		p, ok := place(t, s)
		if !ok {
			return
		}
		_, _, order := s.InTree()
		inOrder := func(a, b int) int { return slices.Index(order, a) - slices.Index(order, b) }
		if !slices.IsSortedFunc(p.Nodes, inOrder) {
			t.Fatalf("%s\nranks on %v are not in tree order", s, s.Names(p.Nodes))
		}
		for l, use := range p.Levels {
			want := use.Domains
			if want == 1 {
				want = 0
			}
			if got := s.Crossings(p.Nodes, l); got != want {
				t.Fatalf("%s\na ring over %v crosses level %d %d times, not %d", s, s.Names(p.Nodes), l, got, want)
			}
		}
	})
}

func TestP10_FreeingANodeNeverCostsMore(t *testing.T) {
	options := topologytest.Options{
		Shapes: 1, Rules: topologytest.Rules(topologytest.Placed, topologytest.Elastic, topologytest.Spares),
	}
	each(t, options, func(t *rapid.T, s topologytest.Scene, r *rand.Rand) {
		before, ok := place(t, s)
		if !ok {
			return
		}
		freer := s.Clone()
		n := r.IntN(len(s.Nodes))
		if r.IntN(2) == 0 {
			for _, shape := range freer.Gang.Shapes {
				if shape.Barred != nil {
					shape.Barred[n] = ""
				}
			}
		} else {
			freer.Free[n] = slices.Clone(s.Free[n])
			for r := range freer.Free[n] {
				freer.Free[n][r]++
			}
		}
		after, short, err := freer.Place()
		if short != nil || err != nil {
			t.Fatalf("%s\nwas placed on %v before; now %v %v", freer, s.Names(before.Nodes), short, err)
		}
		if after.Cost > before.Cost {
			t.Fatalf("%s\n%v costs %d; before %s was freed, %v cost %d", freer, s.Names(after.Nodes), after.Cost,
				s.Nodes[n].Name, s.Names(before.Nodes), before.Cost)
		}
	})
}

// renamed gives label values and nodes other names.
func renamed(
	s topologytest.Scene, value func(level int, v string) string, node func(name string) string,
) topologytest.Scene {
	other := s.Clone()
	for i, n := range s.Nodes {
		other.Nodes[i] = topology.Node{Name: node(n.Name), Labels: map[string]string{}}
		for l, level := range s.Levels {
			if v := n.Labels[level.Key]; v != "" {
				other.Nodes[i].Labels[level.Key] = value(l, v)
			}
		}
	}
	return other
}

// Names decide between equals and about nothing else.
func TestP7_OtherNamesChangeNoCost(t *testing.T) {
	options := topologytest.Options{Shapes: 1, Rules: topologytest.Rules(topologytest.Placed)}
	each(t, options, func(t *rapid.T, s topologytest.Scene, r *rand.Rand) {
		if r := row(s); r != oneKind && r != oneKindSpared {
			return // names may change the result of a search
		}
		values := make([][]int, len(s.Levels))
		for l := range values {
			values[l] = r.Perm(3)
		}
		nodes := r.Perm(8)
		other := renamed(s,
			func(l int, v string) string { return fmt.Sprintf("x%d", values[l][v[1]-'1']) },
			func(name string) string {
				for n := range nodes {
					if name == fmt.Sprintf("n%d", n+7) {
						return fmt.Sprintf("host-%d", nodes[n])
					}
				}
				return name
			})
		p, short, err := s.Place()
		q, otherShort, otherErr := other.Place()
		same := (short == nil) == (otherShort == nil) && p.Cost == q.Cost && p.Bound == q.Bound
		if !same || fmt.Sprint(errors.Unwrap(err)) != fmt.Sprint(errors.Unwrap(otherErr)) {
			t.Fatalf("%s\n%v costs %d (%v %v); renamed to\n%s\n%v costs %d (%v %v)",
				s, s.Names(p.Nodes), p.Cost, short, err, other, other.Names(q.Nodes), q.Cost, otherShort, otherErr)
		}
	})
}

// Where the order of names stays, so does the whole answer, whatever the order in which the nodes are given.
func TestP7_OrderAndOtherLabelsChangeNothing(t *testing.T) {
	each(t, anything(), func(t *rapid.T, s topologytest.Scene, r *rand.Rand) {
		order := r.Perm(len(s.Nodes))
		longer := func(_ int, v string) string { return "rack-" + v[1:] + "0" }
		other := renamed(s, longer, func(name string) string { return "host-" + name[1:] + "5" }).Shuffled(order)
		for i := range other.Nodes {
			other.Nodes[i].Labels["kubernetes.io/hostname"] = other.Nodes[i].Name
		}
		p, short, err := s.Place()
		q, otherShort, otherErr := other.Place()
		if (short == nil) != (otherShort == nil) || (err == nil) != (otherErr == nil) {
			t.Fatalf("%s\n%v %v, shuffled %v %v", s, short, err, otherShort, otherErr)
		}
		for m, n := range q.Nodes {
			q.Nodes[m] = order[n]
		}
		p.Within, q.Within = topology.Domain{}, topology.Domain{} // in other words
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatalf("%s\nanswer differs (-given +shuffled):\n%s", s, diff)
		}
	})
}

func TestP7_TheSameQuestionHasTheSameAnswer(t *testing.T) {
	each(t, anything(), func(t *rapid.T, s topologytest.Scene, _ *rand.Rand) {
		before := s.String()
		p, short, err := s.Place()
		q, otherShort, otherErr := s.Place()
		diff := cmp.Diff(p, q) + cmp.Diff(short, otherShort) + cmp.Diff(fmt.Sprint(err), fmt.Sprint(otherErr))
		if diff != "" {
			t.Fatalf("%s\nanswer differs:\n%s", s, diff)
		}
		if diff := cmp.Diff(before, s.String()); diff != "" {
			t.Fatalf("asking changed the question:\n%s", diff)
		}
	})
}

// Late members have a place like all others.
func TestPlace_LateMembersLikeAllOthers(t *testing.T) {
	each(t, anything(), func(t *rapid.T, s topologytest.Scene, r *rand.Rand) {
		later := s.Clone()
		for m := range later.Gang.Members {
			later.Gang.Members[m].Late = r.IntN(2) == 0
		}
		p, short, err := s.Place()
		q, otherShort, otherErr := later.Place()
		if diff := cmp.Diff(p, q) + cmp.Diff(short, otherShort); diff != "" || (err == nil) != (otherErr == nil) {
			t.Fatalf("%s\n%v %v; answer differs if some are late:\n%s", s, err, otherErr, diff)
		}
	})
}

// A shortfall counts every node once, and the nearest domain first.
func TestP8_ShortfallsAddUp(t *testing.T) {
	options := topologytest.Options{Shapes: 3, Rules: []topologytest.Rule{topologytest.Required}}
	each(t, options, func(t *rapid.T, s topologytest.Scene, _ *rand.Rand) {
		_, short, err := s.Place()
		if err != nil {
			t.Fatalf("%s\n%v", s, err)
		}
		if short == nil {
			return
		}
		total := short.Outside + short.Full + short.Open
		for _, r := range short.Barred {
			total += r.Nodes
		}
		if total != len(s.Nodes) {
			t.Fatalf("%s\n%+v speaks of %d nodes", s, short, total)
		}
		if holds, ok := nearest(s); ok && short.Nearest[0].Holds != holds {
			t.Fatalf("%s\n%+v: the nearest domain holds %d", s, short, holds)
		}
		for i, near := range short.Nearest {
			if near.Holds >= len(s.Gang.Members) || i > 0 && near.Holds > short.Nearest[i-1].Holds {
				t.Fatalf("%s\n%+v: nearest domains are wrong", s, short)
			}
		}
		if text := short.String(); text == "" || strings.ContainsAny(text, "\n\r") {
			t.Fatalf("%s\nshortfall is not one line: %q", s, text)
		}
	})
}

// nearest is the most members that one domain of the required level holds, for a gang of one kind; false if no node is
// in one.
func nearest(s topologytest.Scene) (holds int, ok bool) {
	if of, _ := s.Kinds(); slices.Max(of) > 0 {
		return 0, false
	}
	groups := make([]int, len(s.Nodes)) // without a required level the fleet is one
	if s.Gang.Required != "" {
		groups, _ = s.Groups(s.Level(s.Gang.Required))
	}
	rooms := make([]int, len(s.Nodes))
	for n, group := range groups {
		if s.Usable(n) {
			ok = true
			rooms[group] += s.Room(s.Gang.Members[0].Shape, n, len(s.Gang.Members))
		}
	}
	return slices.Max(rooms), ok
}
