package report

import (
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// runData is a run among others.
type runData struct {
	Name   string      `json:"name"`
	Series *seriesData `json:"series"`
	// Waits are curves over all jobs, and over GPU-hours.
	Waits []curve `json:"waits"`
}

// scatterData are the waits of jobs under two schedulers.
type scatterData struct {
	First string    `json:"first"`
	Pairs []against `json:"pairs"`
}

// against has the seconds that jobs waited under the first scheduler and under another one, and the jobs' sizes.
type against struct {
	Name  string    `json:"name"`
	X     []float64 `json:"x"`
	Y     []float64 `json:"y"`
	Sizes []int64   `json:"sizes"`
	// Shorter and Longer are the numbers of jobs that waited less, or longer, than under the first; Of is the number
	// that both have played.
	Shorter int `json:"shorter"`
	Longer  int `json:"longer"`
	Of      int `json:"of"`
}

// dots is the largest number of jobs of a scheduler in a scatter.
const dots = 4000

// addRun adds a run to those that are compared.
func (d *pageData) addRun(in *Input) {
	if n := len(in.Series.Seconds); n > 0 {
		d.End = max(d.End, in.Series.Seconds[n-1])
	}
	r := runData{Name: in.Card.Scheduler, Series: columns(&in.Series)}
	if curves := waits(in); len(curves) > 0 {
		r.Waits = curves[:min(2, len(curves))]
	}
	d.Runs = append(d.Runs, r)
}

// pairs compares the jobs of two runs. It counts jobs that arrived in both; those that waited in neither have no dot,
// and of the others every k-th one has, if there are too many.
func pairs(first, other *Input) against {
	a := against{Name: other.Card.Scheduler}
	of := make(map[int]*measure.Outcome, len(first.Outcomes))
	for i := range first.Outcomes {
		of[first.Outcomes[i].Job] = &first.Outcomes[i]
	}
	for i := range other.Outcomes {
		o := &other.Outcomes[i]
		f, both := of[o.Job]
		if !both {
			continue
		}
		a.Of++
		if o.Wait < f.Wait {
			a.Shorter++
		} else if o.Wait > f.Wait {
			a.Longer++
		}
		if o.Wait > 0 || f.Wait > 0 {
			a.X, a.Y = append(a.X, round(f.Wait.Seconds(), 1)), append(a.Y, round(o.Wait.Seconds(), 1))
			a.Sizes = append(a.Sizes, o.Accelerators)
		}
	}
	step := (len(a.X) + dots - 1) / dots
	a.X, a.Y, a.Sizes = every(a.X, step), every(a.Y, step), every(a.Sizes, step)
	return a
}

func every[T any](all []T, step int) []T {
	if step <= 1 {
		return all
	}
	var out []T
	for i := 0; i < len(all); i += step {
		out = append(out, all[i])
	}
	return out
}

// compared adds the charts of several runs.
func (p *page) compared(c *Comparison, d *pageData) {
	inTime := presence(len(d.Runs) > 1 && len(d.Runs[0].Series.At) > 1)
	use, waited := &table{Head: []string{""}}, &table{}
	for i := range c.Runs {
		u := c.Runs[i].Card.Utilization
		use.Rows = append(use.Rows, []string{d.Runs[i].Name, percent(u.Mean), percent(u.Peak)})
		for _, row := range waitsTable(d.Runs[i].Waits).Rows {
			row[0] = d.Runs[i].Name + ", " + row[0]
			waited.Rows = append(waited.Rows, row)
		}
	}
	use.Head = []string{"", "mean", "peak"}
	waited.Head = waitsTable(nil).Head
	p.add(inTime, figure{
		ID: "use-compared", Title: "Allocation and demand over time", Chart: true, Wide: true, Tall: true,
		Table: use, Caption: "All schedulers play the same jobs and the same failures.",
		Formula: formula("utilisation.mean"),
	})
	p.add(inTime && len(waited.Rows) > 0, figure{
		ID: "waits-compared", Title: "How long jobs waited", Chart: true, Tall: true, Table: waited,
		Caption: "Share of all jobs; dashed lines count each job by the GPU-hours that it asks for. " +
			"Further left is better.",
		Formula: formula("wait_seconds.mean"),
	})
	if !inTime {
		return
	}
	d.Scatter = &scatterData{First: d.Runs[0].Name}
	counts := &table{Head: []string{"against " + d.Runs[0].Name, "jobs", "waited less", "equally long", "longer"}}
	dotted := 0
	for i := range c.Runs[1:] {
		a := pairs(&c.Runs[0], &c.Runs[i+1])
		dotted += len(a.X)
		d.Scatter.Pairs = append(d.Scatter.Pairs, a)
		counts.Rows = append(counts.Rows, []string{
			a.Name, count(a.Of), count(a.Shorter), count(a.Of - a.Shorter - a.Longer), count(a.Longer),
		})
	}
	p.add(dotted > 0, figure{
		ID: "scatter", Title: "Who pays, and who gains", Chart: true, Tall: true, Table: counts,
		Caption: "A dot is a job. Below the line it waited less than under " + d.Runs[0].Name +
			", above it longer; larger dots are larger jobs. Jobs that waited under neither have no dot.",
	})
}
