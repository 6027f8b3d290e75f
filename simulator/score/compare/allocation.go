package compare

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Allocation is the share of openb's GPUs that each policy allocated, by the requested share.
type Allocation struct {
	// Arrivals are the marks: GPUs asked for in per cent of those of the cluster, ascending.
	Arrivals []int    `json:"arrivals"`
	Policies []Policy `json:"policies"`
}

// Policy holds the allocation of a policy.
type Policy struct {
	Name string `json:"name"`
	// Allocated is by arrival, in per cent of the cluster's GPUs.
	Allocated []Spread `json:"allocated"`
	Seeds     int      `json:"seeds"`
	// Published is the published value for arrivals of 100 per cent; nil for none.
	Published *Spread `json:"published,omitempty"`
}

// Spread is a mean and the standard deviation of the seeds around it, 0 of a single seed.
type Spread struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"sd"`
}

// Allocations makes the table of runs of openb, policies in the order in which they first appear. published has others'
// results for arrivals of 100 per cent, by policy; it may be nil. A run that is none of openb's is bad input.
func Allocations(cards []measure.Scorecard, published map[string]Spread) (Allocation, error) {
	for i := range cards {
		if len(cards[i].AllocationAtArrival) == 0 {
			return Allocation{}, &badinput.Error{
				What: "the run of " + name(
					&cards[i],
				) + " has no allocation at arrival",
				Mend: "play a trace and a fleet of openb",
			}
		}
	}
	a := allocation(cards)
	for i, p := range a.Policies {
		if value, ok := published[p.Name]; ok {
			a.Policies[i].Published = &value
		}
	}
	return a, nil
}

func allocation(cards []measure.Scorecard) Allocation {
	a, values := Allocation{Arrivals: marks(cards)}, make(map[string][][]float64)
	for i := range cards {
		card := &cards[i]
		if values[card.Scheduler] == nil {
			a.Policies = append(a.Policies, Policy{Name: card.Scheduler})
			values[card.Scheduler] = make([][]float64, len(a.Arrivals))
		}
		for at, mark := range a.Arrivals {
			if v, ok := card.AllocationAtArrival[strconv.Itoa(mark)]; ok {
				values[card.Scheduler][at] = append(values[card.Scheduler][at], v)
			}
		}
	}
	for i, p := range a.Policies {
		for _, of := range values[p.Name] {
			mean, deviation := spread(of)
			a.Policies[i].Allocated = append(
				a.Policies[i].Allocated,
				Spread{measure.Tidy(mean), measure.Tidy(deviation)},
			)
			a.Policies[i].Seeds = max(a.Policies[i].Seeds, len(of))
		}
	}
	return a
}

// marks are the arrivals that any of the runs has.
func marks(cards []measure.Scorecard) []int {
	seen := make(map[int]bool)
	for i := range cards {
		for mark := range cards[i].AllocationAtArrival {
			if n, err := strconv.Atoi(mark); err == nil {
				seen[n] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// shared reports whether all runs are of openb.
func (g *group) shared() bool {
	return !slices.ContainsFunc(g.cards, func(c measure.Scorecard) bool { return len(c.AllocationAtArrival) == 0 })
}

// WriteText prints the table for people.
func (a Allocation) WriteText(w io.Writer) error {
	var b strings.Builder
	a.write(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the table of allocations: %w", err)
	}
	return nil
}

func (a Allocation) write(b *strings.Builder) {
	published := slices.ContainsFunc(a.Policies, func(p Policy) bool { return p.Published != nil })
	b.WriteString(
		"GPUs allocated, in per cent of all, when so many per cent had been asked for: mean ± sd of the seeds\n",
	)
	fmt.Fprintf(b, "%-20s", "")
	for _, mark := range a.Arrivals {
		fmt.Fprintf(b, " %13s", strconv.Itoa(mark)+" %")
	}
	if published {
		fmt.Fprintf(b, " %15s", "published 100 %")
	}
	b.WriteString("\n")
	for _, p := range a.Policies {
		fmt.Fprintf(b, "%-20s", p.Name)
		for _, s := range p.Allocated {
			fmt.Fprintf(b, " %13s", s)
		}
		if p.Published != nil {
			fmt.Fprintf(b, " %15s", *p.Published)
		}
		b.WriteString("\n")
	}
}

// String is the mean and its deviation.
func (s Spread) String() string { return fmt.Sprintf("%.2f ± %.2f", s.Mean, s.Deviation) }
