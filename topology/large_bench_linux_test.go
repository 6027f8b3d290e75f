package topology_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/topology"
)

// largeShapes adds a fleet of four levels to the others: superpods of eight blocks of 16 racks of two NVLink cliques of
// 16 nodes.
func largeShapes() []shape {
	level := func(name string, weight int64) topology.Level {
		return topology.Level{Name: name, Key: "test/" + name, Weight: weight}
	}
	superpod := shape{"superpod", []topology.Level{
		level("superpod", 800), level("block", 400), level("rack", 100), level("clique", 700),
	}, []int{8, 16, 2, 16}, 1}
	return append(shapes(), superpod)
}

// largeAsk wants nearly a whole fleet. down counts the nodes that take no member; of the remaining places the gang
// wants all but a share of spare, in segments of this many members of the innermost level if that is not 0.
type largeAsk struct {
	name    string
	down    func(nodes int, r *rand.Rand) int
	leaves  int // one of so many members that would fit is left out, 0 for none
	segment int
}

func largeAsks() []largeAsk {
	none := func(int, *rand.Rand) int { return 0 }
	few := func(_ int, r *rand.Rand) int { return 1 + r.IntN(64) }
	some := func(nodes int, r *rand.Rand) int { return 1 + r.IntN(nodes/64) }
	return []largeAsk{
		{"all", none, 0, 0},      // as many members as there are nodes
		{"left", few, 0, 0},      // up to 64 nodes are cordoned, and the gang takes all others
		{"most", some, 64, 0},    // up to 1/64 is held, and the gang takes 63/64 of the rest
		{"segments", some, 0, 2}, // the same, for ranks in pairs of one innermost domain
	}
}

// largeFleet draws states of one fleet in the same memory.
type largeFleet struct {
	shape   shape
	ledger  topology.Ledger
	room    []int
	members []topology.Member
}

func newLargeFleet(b *testing.B, s shape, nodes int) *largeFleet {
	b.Helper()
	f := &largeFleet{shape: s, ledger: topology.Ledger{Tree: s.tree(b, nodes)}, room: make([]int, nodes)}
	f.ledger.Tree.Nested() // builds the lazily made layouts
	const resources = 4
	memory := make(topology.Capacity, resources*nodes)
	for i := range nodes {
		f.ledger.Free = append(f.ledger.Free, memory[i*resources:(i+1)*resources:(i+1)*resources])
	}
	f.members = workers(nodes * s.perNode).Members
	return f
}

// draw takes nodes away and returns the gang that the ask describes.
func (f *largeFleet) draw(ask largeAsk, r *rand.Rand) topology.Gang {
	nodes := len(f.room)
	for i := range f.room {
		f.room[i] = 1 + r.IntN(f.shape.perNode)
	}
	for range ask.down(nodes, r) {
		f.room[r.IntN(nodes)] = 0
	}
	perDomain, total := make(map[int]int), 0
	for i, n := range f.room {
		copy(f.ledger.Free[i], topology.Capacity{int64(n), 16000 + int64(r.IntN(32000)), 1 << 40, 110})
		total += n
		perDomain[i/f.shape.fan[len(f.shape.fan)-1]] += n
	}
	g := workers(0)
	if ask.segment > 0 {
		g.Segment = topology.Segment{Size: ask.segment, Level: f.shape.levels[len(f.shape.levels)-1].Name}
		total = 0
		for _, n := range perDomain {
			total += n - n%ask.segment
		}
	}
	if ask.leaves > 0 {
		total -= total / ask.leaves
	}
	g.Members = f.members[:min(total, nodes)]
	return g
}

// times are the milliseconds of many decisions.
type times []float64

func (t times) report(b *testing.B, name string) {
	b.Helper()
	if len(t) == 0 {
		return
	}
	slices.Sort(t)
	b.ReportMetric(t[len(t)/2], "p50-"+name)
	b.ReportMetric(t[len(t)*99/100], "p99-"+name)
	b.ReportMetric(t[len(t)-1], "max-"+name)
}

// decisions are the times of many decisions by the clock and by the processor. The latter is that of the thread, and so
// excludes the machine's other load and the garbage collector's threads.
type decisions struct{ clock, processor times }

func (d *decisions) add(b *testing.B, decide func()) {
	b.Helper()
	start, from := time.Now(), threadTime(b)
	decide()
	d.processor = append(d.processor, float64((threadTime(b)-from).Microseconds())/1000)
	d.clock = append(d.clock, float64(time.Since(start).Microseconds())/1000)
}

func (d *decisions) report(b *testing.B) {
	b.Helper()
	d.clock.report(b, "ms")
	d.processor.report(b, "cpu-ms")
}

// threadTime is the processor time of the thread, which the goroutine is locked to.
func threadTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Gangs of nearly as many members as the fleet has nodes: run with -benchtime 10000x. The states take turns among the
// asks; each is another fleet of the same form.
func BenchmarkPlaceLarge(b *testing.B) {
	for _, s := range largeShapes() {
		for _, nodes := range []int{1024, 4096, 16384, 65536, 131_072} {
			b.Run(fmt.Sprintf("nodes=%d/fleet=%s", nodes, s.name), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				f, asks := newLargeFleet(b, s, nodes), largeAsks()
				var took decisions
				by := make([]decisions, len(asks))
				for seed := 0; b.Loop(); seed++ {
					which := seed % len(asks)
					g := f.draw(asks[which], rand.New(rand.NewPCG(uint64(seed), 0)))
					took.add(b, func() {
						by[which].add(b, func() {
							if p, short, err := topology.Place(
								f.ledger,
								g,
							); short != nil || err != nil ||
								!p.Optimal() {
								b.Fatal(asks[which].name, short, err)
							}
						})
					})
				}
				took.report(b)
				for i, ask := range asks {
					by[i].processor.report(b, "cpu-ms-"+ask.name)
				}
			})
		}
	}
}

// A gang that leaves 64 of the fleet's nodes free is planned anew after a node was taken or given back, with the counts
// that the book retains.
func BenchmarkReplanLarge(b *testing.B) {
	for _, s := range largeShapes() {
		for _, nodes := range []int{1024, 4096, 16384, 65536, 131_072} {
			b.Run(fmt.Sprintf("nodes=%d/fleet=%s", nodes, s.name), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				f, random := newLargeFleet(b, s, nodes), rand.New(rand.NewPCG(1, 2))
				g := f.draw(largeAsk{down: func(int, *rand.Rand) int { return 0 }}, random)
				g.Members = g.Members[:len(g.Members)-64]
				book := topology.NewBook(f.ledger)
				var away []int
				var took decisions
				for i := 0; b.Loop(); i++ {
					if back := len(away) - 1; back >= 0 && (len(away) == 64 || random.IntN(2) == 0) {
						book.Put(away[back], f.ledger.Free[away[back]])
						away = away[:back]
					} else if node := random.IntN(nodes); !slices.Contains(away, node) {
						book.Put(node, nil)
						away = append(away, node)
					}
					replan := func() {
						if p, short, err := topology.Place(
							book.Ledger(),
							g,
						); short != nil || err != nil ||
							!p.Optimal() {
							b.Fatal(short, err)
						}
					}
					if i == 0 { // all is counted
						replan()
						continue
					}
					took.add(b, replan)
				}
				took.report(b)
			})
		}
	}
}
