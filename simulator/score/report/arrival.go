package report

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// arrival is the allocated part (Y) at a requested part (X), in per cent of the fleet's GPUs.
type arrival struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

// arrivalOf is the curve of a run in which nothing ends; its X are ascending.
func arrivalOf(card *measure.Scorecard) arrival {
	type point struct{ x, y float64 }
	var all []point
	for at, allocated := range card.AllocationAtArrival {
		if x, err := strconv.ParseFloat(at, 64); err == nil {
			all = append(all, point{x, allocated})
		}
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	a := arrival{Name: card.Scheduler}
	for _, p := range all {
		a.X, a.Y = append(a.X, p.x), append(a.Y, round(p.y, 3))
	}
	return a
}

// arrivals adds the chart of runs in which nothing ends.
func (p *page) arrivals(d *pageData) {
	t := &table{Head: []string{"GPUs asked for"}}
	for i, a := range d.Arrival {
		t.Head = append(t.Head, a.Name)
		for k, x := range a.X {
			if i == 0 {
				t.Rows = append(t.Rows, []string{number(x) + " %"})
			}
			if k < len(t.Rows) {
				t.Rows[k] = append(t.Rows[k], strconv.FormatFloat(a.Y[k], 'f', 2, 64)+" %")
			}
		}
	}
	p.add(len(d.Arrival) > 0, figure{
		ID: "arrival", Title: "Allocation by arrivals", Chart: true, Wide: true, Tall: true, Table: t,
		Caption: "Pods come one after another and none ends. Both axes are per cent of the fleet's GPUs; " +
			"what does not fit is dropped.",
		Formula: "Sum of the GPUs of the pods that were placed, when all pods that came so far ask for so many " +
			"(the FGD paper, USENIX ATC '23).",
	})
}
