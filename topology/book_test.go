package topology_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// bookScene is a book of a fleet whose nodes and labels are drawn, and the same ledger without one. In every other
// scene the book explains.
type bookScene struct {
	book     *topology.Book
	explains bool
	plain    topology.Ledger
	running  []topology.Running
}

func drawBook(t *testing.T, r *rand.Rand) *bookScene {
	t.Helper()
	nodes := make([]topology.Node, 1+r.IntN(40))
	free := make([]topology.Capacity, len(nodes))
	perRack, perBlock := 1+r.IntN(6), 1+r.IntN(12)
	for i := range nodes {
		labels := map[string]string{"block": fmt.Sprint("b", i/perBlock), "rack": fmt.Sprint("r", i/perRack)}
		if r.IntN(12) == 0 {
			delete(labels, "rack")
		}
		if r.IntN(20) == 0 {
			delete(labels, "block")
		}
		nodes[i] = topology.Node{Name: fmt.Sprintf("n%02d", i), Labels: labels}
		free[i] = topology.Capacity{8, int64(4 + r.IntN(8))}
	}
	tree, err := topology.NewTree([]topology.Level{
		{Name: "block", Key: "block", Weight: int64(r.IntN(3) * 200)}, {Name: "rack", Key: "rack", Weight: 50},
	}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	s := &bookScene{plain: topology.Ledger{Tree: tree, Free: free, Total: slices.Clone(free)}}
	s.book = topology.NewBook(s.plain)
	if s.explains = r.IntN(2) == 0; s.explains {
		s.book.Explain()
	}
	return s
}

// drawBookGang is most often one that a book counts, and sometimes one with rules that it does not.
func (s *bookScene) drawGang(r *rand.Rand, name string) topology.Gang {
	levels := []string{"", "", "block", "rack", topology.LevelNode}
	g := topology.Gang{
		Name: name, Members: make([]topology.Member, 1+r.IntN(1+r.IntN(12))), Required: levels[r.IntN(len(levels))],
		Preferred: levels[r.IntN(len(levels))], Communication: topology.Communication(r.IntN(3)),
		Shapes: []topology.Shape{{Demand: topology.Capacity{int64(1 << r.IntN(4)), int64(r.IntN(2))}}},
	}
	if r.IntN(3) == 0 {
		barred := make([]string, s.plain.Len())
		for node := range barred {
			if r.IntN(4) == 0 {
				barred[node] = "cordoned"
			}
		}
		g.Shapes[0].Barred = barred
	}
	switch r.IntN(10) {
	case 0:
		g.PerNode = 1 + r.IntN(3)
	case 1:
		g.Min = 1 + r.IntN(len(g.Members))
	case 2:
		g.Segment = topology.Segment{Size: 1 + r.IntN(3), Level: "rack"}
	case 3:
		g.Spread = topology.Spread{Max: 1 + r.IntN(4), Level: "rack"}
	case 4:
		g.Spares = topology.Spares{Nodes: 1, Level: "rack"}
	case 5:
		g.Shapes = append(g.Shapes, topology.Shape{Demand: topology.Capacity{2}})
		g.Members[0].Shape = 1
	}
	return g
}

// take lets a gang run, or ends one.
func (s *bookScene) take(r *rand.Rand, g topology.Gang, p topology.Placement) {
	one := topology.Running{Name: g.Name, End: int64(r.IntN(6) * 10)}
	if r.IntN(5) == 0 {
		one.End = topology.EndUnknown
	}
	for rank, node := range p.Nodes {
		demand := g.Shapes[g.Members[rank].Shape].Demand
		one.Holds = append(one.Holds, topology.Held{Node: node, Demand: demand})
		s.book.Take(node, demand)
	}
	s.plain = s.plain.Beside(g, p)
	s.running = append(s.running, one)
}

func (s *bookScene) leave(i int) {
	s.plain.Free = slices.Clone(s.plain.Free)
	for _, h := range s.running[i].Holds {
		s.book.Give(h.Node, h.Demand)
		free := slices.Clone(s.plain.Free[h.Node])
		for resource, amount := range h.Demand {
			free[resource] += amount
		}
		s.plain.Free[h.Node] = free
	}
	s.running = slices.Delete(s.running, i, i+1)
}

// same fails if two answers differ; of a shortfall only that it is one is compared, unless the book explains.
func (s *bookScene) same(t *testing.T, what string, want, got topology.Placement, short, also *topology.Shortfall) {
	t.Helper()
	if s.explains && !reflect.DeepEqual(short, also) {
		t.Fatalf("%s: with a book %v, without %v", what, also, short)
	}
	if (short == nil) != (also == nil) || !reflect.DeepEqual(want, got) {
		t.Fatalf("%s: with a book %+v (%v), without %+v (%v)", what, got, also, want, short)
	}
}

// All questions about a ledger that changes are answered with a book as without one.
func TestBook_AnswersLikeItsLedger(t *testing.T) {
	placed, passed, kept := 0, 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 21))
		s := drawBook(t, r)
		questions := make([]topology.Gang, 6)
		for i := range questions {
			questions[i] = s.drawGang(r, fmt.Sprint("g", i))
		}
		for range 25 {
			g := questions[r.IntN(len(questions))]
			p, short, err := topology.Place(s.plain, g)
			q, also, wrong := topology.Place(s.book.Ledger(), g)
			if (err == nil) != (wrong == nil) {
				t.Fatalf("seed %d: with a book error %v, without %v", seed, wrong, err)
			}
			if err != nil {
				continue
			}
			s.same(t, fmt.Sprint("seed ", seed, ": placing"), p, q, short, also)
			tried, fits, err := topology.Try(s.book.Ledger(), g)
			if err != nil || fits != (short == nil) || !reflect.DeepEqual(tried, q) {
				t.Fatalf("seed %d: tried, it fits: %t, error %v; the shortfall is %v", seed, fits, err, short)
			}
			if short == nil && r.IntN(3) > 0 {
				s.take(r, g, p)
				placed++
			} else if short != nil {
				p, k := s.reserve(t, r, g, questions[r.IntN(len(questions))])
				passed, kept = passed+p, kept+k
			}
			if len(s.running) > 0 && r.IntN(3) == 0 {
				s.leave(r.IntN(len(s.running)))
			}
			if r.IntN(60) == 0 { // so many changes that the book drops half of its journal
				for range 700 {
					node := r.IntN(s.plain.Len())
					s.book.Give(node, topology.Capacity{1})
					s.book.Take(node, topology.Capacity{1})
				}
			}
			if node := r.IntN(s.plain.Len()); r.IntN(10) == 0 && len(s.running) == 0 {
				s.plain.Free = slices.Clone(s.plain.Free)
				s.plain.Free[node] = topology.Capacity{int64(r.IntN(9)), 3}
				s.book.Put(node, slices.Clone(s.plain.Free[node]))
			}
		}
	}
	if placed < 1000 || passed < 100 || kept < 200 {
		t.Errorf("%d placed, %d kept, %d passed: the scenes are too easy", placed, kept, passed)
	}
}

// reserve compares reservations for the head, and the gangs that may pass it. It counts both.
func (s *bookScene) reserve(t *testing.T, r *rand.Rand, head, other topology.Gang) (passed, kept int) {
	t.Helper()
	want, short, err := topology.Reserve(s.plain, head, s.running)
	got, also, wrong := topology.Reserve(s.book.Ledger(), head, s.running)
	if err != nil || wrong != nil {
		t.Fatal(err, wrong)
	}
	s.same(t, "keeping", want.Placement, got.Placement, short, also)
	if short != nil {
		return 0, 0
	}
	if want.At != got.At {
		t.Fatalf("with a book at %d, without at %d", got.At, want.At)
	}
	end := int64(r.IntN(70))
	if r.IntN(3) == 0 {
		end = topology.EndUnknown
	}
	p, short, err := want.Admit(s.plain, s.running, head, other, end)
	q, also, wrong := got.Admit(s.book.Ledger(), s.running, head, other, end)
	if (err == nil) != (wrong == nil) {
		t.Fatal(err, wrong)
	}
	if err != nil {
		return 0, 1
	}
	s.same(t, "admitting", p, q, short, also)
	if short == nil {
		passed = 1
	}
	p, short, _ = want.Outside(s.plain, head, other)
	q, also, _ = got.Outside(s.book.Ledger(), head, other)
	s.same(t, "placing outside", p, q, short, also)
	return passed, 1
}

// After a Take of more than is free, questions are errors until it is given back, as without a book.
func TestBook_ShortOfCapacity(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s := drawBook(t, r)
	shapes := []topology.Shape{{Demand: topology.Capacity{1}}}
	g := topology.Gang{Name: "g", Members: make([]topology.Member, 1), Shapes: shapes}
	s.book.Take(0, topology.Capacity{9})
	if _, _, err := topology.Place(s.book.Ledger(), g); err == nil {
		t.Error("a node has less than nothing, and nobody minds")
	}
	s.book.Give(0, topology.Capacity{9})
	if _, short, err := topology.Place(s.book.Ledger(), g); short != nil || err != nil {
		t.Error(short, err)
	}
}

// One gang is placed repeatedly while nodes are taken and given back: the retained parts of the last answer must not
// change the next one.
func TestBook_ReplansLikeItsLedger(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := drawBook(t, r)
		demand := topology.Capacity{1 + 7*int64(r.IntN(2))}
		room := 0
		for _, free := range s.plain.Free {
			room += int(free[0] / demand[0])
		}
		g := topology.Gang{
			Name: "train", Members: make([]topology.Member, 1+r.IntN(room)), Shapes: []topology.Shape{{Demand: demand}},
			Communication: topology.Communication(r.IntN(3)), Required: []string{"", "", "block"}[r.IntN(3)],
		}
		s.plain.Free = slices.Clone(s.plain.Free)
		for range 30 {
			node := r.IntN(len(s.plain.Free))
			now := topology.Capacity{int64(r.IntN(9)), 8}
			s.plain.Free[node] = now
			s.book.Put(node, slices.Clone(now))
			if r.IntN(4) == 0 {
				continue // two events at once
			}
			want, short, err := topology.Place(s.plain, g)
			got, also, wrong := topology.Place(s.book.Ledger(), g)
			if err != nil || wrong != nil {
				t.Fatal(err, wrong)
			}
			s.same(t, fmt.Sprintf("seed %d", seed), want, got, short, also)
		}
	}
}
