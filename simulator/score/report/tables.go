package report

import (
	"strconv"
	"time"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// table is a chart's data for readers who do not see it, or a table of its own if Open.
type table struct {
	Head []string
	Rows [][]string
	Note string
	Open bool
}

// rows is the largest number of instants of a series' table.
const rows = 33

// timeTable has instants at equal distances, with cells that a function makes.
func timeTable(s *measure.Series, head []string, cells func(i int) []string) *table {
	t := &table{Head: append([]string{"since the beginning"}, head...)}
	n := len(s.Seconds)
	for k := range min(rows, n) {
		i := k
		if n > rows {
			i = k * (n - 1) / (rows - 1)
		}
		t.Rows = append(t.Rows, append([]string{span(s.Seconds[i])}, cells(i)...))
	}
	if n > rows {
		t.Note = count(rows) + " of " + count(n) + " instants."
	}
	return t
}

func allocationTable(s *measure.Series) *table {
	head := []string{"GPUs there", "in use", "in use, of those there", "asked for by those who wait"}
	return timeTable(s, head, func(i int) []string {
		part := 0.0
		if s.Capacity[i] > 0 {
			part = float64(s.Used[i]) / float64(s.Capacity[i])
		}
		return []string{count(s.Capacity[i]), count(s.Used[i]), percent(part), count(s.Demanded[i])}
	})
}

func spaceTable(s *measure.Series) *table {
	return timeTable(s, []string{"fragmentation", "largest placeable gang, GPUs"}, func(i int) []string {
		return []string{percent(s.Fragmentation[i]), count(s.Largest[i])}
	})
}

func queueTable(s *measure.Series) *table {
	return timeTable(s, []string{"jobs that wait", "age of the oldest"}, func(i int) []string {
		return []string{count(s.Waiting[i]), span(s.OldestSeconds[i])}
	})
}

// waitsTable has percentiles of each curve.
func waitsTable(curves []curve) *table {
	shares := []float64{0.25, 0.5, 0.75, 0.9, 0.95, 0.99}
	t := &table{Head: []string{"", "jobs"}}
	for _, share := range shares {
		t.Head = append(t.Head, strconv.Itoa(int(100*share))+" % waited at most")
	}
	for i := range curves {
		c := &curves[i]
		row := []string{c.Name, count(c.jobs)}
		for _, share := range shares {
			wait, ok := c.reached(share)
			if ok {
				row = append(row, span(wait))
			} else {
				row = append(row, "not served")
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func qualityTable(d *qualityData) *table {
	t := &table{Head: append([]string{"placements of"}, d.Bins...)}
	for i, class := range d.Classes {
		row := []string{class}
		for _, n := range d.Counts[i] {
			row = append(row, count(n))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func latencyTable(d *latencyData) *table {
	t := &table{Head: []string{"below", "a start", "no place now"}}
	for i, below := range d.Below {
		t.Rows = append(t.Rows, []string{
			(time.Duration(below) * time.Microsecond).String(), count(d.Placed[i]), count(d.Refused[i]),
		})
	}
	return t
}

func classTable(card *measure.Scorecard) *table {
	t := &table{Open: true, Head: []string{
		"jobs of", "jobs", "still wait", "GPU-hours", "wait: mean", "p50", "p95", "max", "completion: p50", "p95",
		"mean Q",
	}}
	for _, c := range card.Classes {
		t.Rows = append(t.Rows, []string{
			c.Name, count(c.Jobs), count(c.Pending), number(round(c.GPUHours, 1)), span(c.Wait.Mean),
			span(c.Wait.P50), span(c.Wait.P95), span(c.Wait.Max), span(c.JCT.P50), span(c.JCT.P95),
			strconv.FormatFloat(c.MeanQ, 'f', 3, 64),
		})
	}
	return t
}

func longestTable(outcomes []measure.Outcome) *table {
	t := &table{Open: true, Head: []string{
		"job", "tenant", "GPUs", "came", "waited", "started", "nodes", "Q", "preempted", "lost its nodes",
	}}
	for _, o := range outcomes {
		started, q := "never", ""
		if o.Start != measure.Never {
			started = lasting(o.Start)
		}
		if o.Q > 0 {
			q = strconv.FormatFloat(o.Q, 'f', 3, 64)
		}
		waited := lasting(o.Wait)
		if o.Waiting {
			waited += ", still does"
		}
		t.Rows = append(t.Rows, []string{
			o.ID, o.Tenant, count(o.Accelerators), lasting(o.Submit), waited, started, count(o.Nodes), q,
			count(o.Preemptions), count(o.Disruptions),
		})
	}
	return t
}
