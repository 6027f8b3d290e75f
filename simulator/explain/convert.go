package explain

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/topology"
)

// About is the answer about a gang. The forecast may be nil; then only the verdict's own information about its start is
// included.
func About(v whatif.Verdict, f *Forecast, now time.Time) Gang {
	g := Gang{
		Name: v.Gang.Name.String(), State: string(v.State), Starts: v.Starts(), Position: v.Gang.Position,
		Priority: v.Gang.Priority, QueuedAt: v.Gang.Since.UTC(), Members: v.Gang.Members, Needed: v.Gang.Needed,
		Running: v.Gang.Runs, Accelerators: v.Gang.Accelerators, Problem: v.Problem, NoVictims: v.NoVictims,
		After: namesOf(v.After), Passes: namesOf(v.Passes),
	}
	if v.Where != nil {
		g.Where = new(whereOf(*v.Where))
	}
	if m := v.Missing; m != nil {
		g.Missing = &Missing{Exist: m.Exist, Indexes: m.Indexes, Leaving: m.Leaving, Gates: make(map[string]int)}
		for _, gate := range m.Gates {
			g.Missing.Gates[gate.Name] = gate.Pods
		}
	}
	if v.Shortfall != nil {
		g.Shortfall = shortfallOf(v.Shortfall)
		g.Shortfall.Text += v.Note
	}
	if v.Reserved != nil {
		g.Reserved = new(reservedOf(*v.Reserved))
	}
	if b := v.Behind; b != nil {
		g.Behind = &Behind{At: known(b.At), End: known(b.End)}
		for _, of := range b.Of {
			g.Behind.Reserved = append(g.Behind.Reserved, reservedOf(of))
		}
	}
	for _, of := range v.Services {
		name, pod := unitName(of.Name)
		g.Services = append(g.Services, Waited{Name: name, Pod: pod, Accelerators: of.Accelerators})
	}
	if s := v.Sweep; s != nil {
		g.Sweep = &Sweep{s.Name, s.Running, s.Before, s.Limit}
	}
	if p := v.Preemption; p != nil {
		g.Preemption = preemptionOf(*p)
	}
	switch v.State {
	case whatif.Waits, whatif.Fits, whatif.Preempts, whatif.Moves:
		g.Start = f.start(v, now)
		g.Start.Usually = usually(v.Gang.Forecast, now)
	default:
	}
	g.Answer = sentence(v, g, now)
	return g
}

func whereOf(w whatif.Where) Where {
	out := Where{Within: named(w.Within)}
	nodes := make(map[string]bool, len(w.Members))
	for _, member := range w.Members {
		nodes[member.Node] = true
		rank := Rank{
			Rank: member.Rank, Pod: member.Member, Node: member.Node, Late: member.Late, Planned: member.New,
			Domains: make(map[string]string, len(member.Domains)),
		}
		for _, domain := range member.Domains {
			rank.Domains[domain.Level.Name] = domain.Path[len(domain.Path)-1]
			rank.path = domain.String()
		}
		out.Ranks = append(out.Ranks, rank)
	}
	out.Nodes = len(nodes)
	return out
}

// named is a domain as people give one: LEVEL=PATH; "" for the fleet.
func named(d topology.Domain) string {
	if len(d.Path) == 0 {
		return ""
	}
	return d.Level.Name + "=" + d.String()
}

func shortfallOf(s *topology.Shortfall) *Shortfall {
	out := &Shortfall{
		Text:    s.String(),
		Level:   s.Level.Name,
		Members: s.Members,
		Full:    s.Full,
		Open:    s.Open,
		Outside: s.Outside,
		Never:   s.Never,
		Barred:  make(map[string]int, len(s.Barred)),
	}
	for _, near := range s.Nearest {
		out.Nearest = append(out.Nearest, Near{Domain: near.Domain.String(), Holds: near.Holds, Lacks: near.Lacks})
	}
	for _, rule := range s.Barred {
		out.Barred[rule.Rule] = rule.Nodes
	}
	return out
}

func reservedOf(r whatif.Reservation) Reserved {
	out := Reserved{
		For: r.For.String(), Reason: string(r.Reason), At: known(r.At), Estimated: r.Estimated, Open: r.Open,
		Where: whereOf(r.Where), WaitsFor: []Waited{},
	}
	for _, w := range r.Waits {
		name, pod := unitName(w.Name)
		out.WaitsFor = append(out.WaitsFor, Waited{
			Name: name, Pod: pod, End: known(w.End), Estimated: w.Estimated, Overdue: w.Overdue,
			Accelerators: w.Accelerators,
		})
	}
	return out
}

func namesOf(gangs []types.NamespacedName) []string {
	var names []string
	for _, name := range gangs {
		names = append(names, name.String())
	}
	return names
}

// unitName returns the name of a gang or single pod, and whether it is a single pod, which has a slash after its name.
func unitName(name string) (string, bool) { return strings.CutSuffix(name, "/") }

func preemptionOf(p whatif.Preemption) *Preemption {
	out := &Preemption{LostHours: hours(p.Lost), Cheapest: p.Cheapest, Exceeded: p.Exceeded}
	for _, v := range p.Victims {
		name, pod := unitName(v.Name)
		out.Victims = append(out.Victims, Victim{
			Name:         name,
			Pod:          pod,
			Priority:     v.Priority,
			Pods:         v.Pods,
			Accelerators: v.Accelerators,
			LostHours:    hours(v.Lost),
			Leaving:      v.Leaving,
		})
	}
	return out
}

// AboutQueue is the answer about all that wait.
func AboutQueue(verdicts []whatif.Verdict, f *Forecast, now time.Time) *Queue {
	q := &Queue{Gangs: []Gang{}}
	for _, v := range verdicts {
		q.Gangs = append(q.Gangs, About(v, f, now))
	}
	return q
}

// AboutDrain is the answer about a drain.
func AboutDrain(d whatif.Displaced, now time.Time) *Drain {
	out := &Drain{
		Nodes:     d.Nodes,
		Settled:   d.Settled(),
		Stay:      d.Stay,
		LostHours: hours(d.Lost),
		Exceeded:  d.Exceeded,
		Moves:     []Move{},
	}
	for _, m := range d.Moves {
		out.Moves = append(out.Moves, Move{
			Name:         m.Name.String(),
			Pod:          m.Pod,
			Ends:         m.Pods,
			Drained:      m.Drained,
			Accelerators: m.Accelerators,
			LostHours:    hours(m.Lost),
			Forever:      m.Forever,
			Then:         About(m.Verdict, nil, now),
		})
	}
	out.Answer = out.sentence()
	return out
}

// Starts reports whether nothing in the answer waits.
func (a Answer) Starts() bool {
	waits := func(g Gang) bool { return !g.Starts }
	return (a.Job == nil || a.Job.Starts) && !slices.ContainsFunc(a.Gangs, waits) &&
		(a.Queue == nil || !slices.ContainsFunc(a.Queue.Gangs, waits)) && (a.Drain == nil || a.Drain.Settled)
}

// hours are accelerator-hours of accelerator-seconds, to a hundredth.
func hours(seconds int64) float64 { return float64((seconds+18)/36) / 100 }

// known is an instant, nil if it is not known.
func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return new(at.UTC())
}
