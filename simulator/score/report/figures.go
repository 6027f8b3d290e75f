package report

import (
	"fmt"
	"slices"
	"strconv"
)

// figure is a chart, a map or a table, with the explanations that readers need.
type figure struct {
	ID, Title, Caption, Formula string
	Chart, Map, Wide, Tall      bool
	Table                       *table
}

// pageData is the input of the page's scripts.
type pageData struct {
	// End is the last instant, Busiest the first one at which most accelerators are in use, in seconds.
	End     float64 `json:"end"`
	Busiest float64 `json:"busiest"`
	// Window is the time that the scorecard's means cover, in seconds.
	Window  []float64    `json:"window,omitempty"`
	Series  *seriesData  `json:"series,omitempty"`
	Waits   []curve      `json:"waits,omitempty"`
	Quality *qualityData `json:"quality,omitempty"`
	Latency *latencyData `json:"latency,omitempty"`
	Map     *mapData     `json:"map,omitempty"`
	Arrival []arrival    `json:"arrival,omitempty"`
	Runs    []runData    `json:"runs,omitempty"`
	Scatter *scatterData `json:"scatter,omitempty"`
}

// add puts a figure after the others if it has something to show.
func (p *page) add(has presence, f figure) {
	if has {
		p.Figures = append(p.Figures, f)
	}
}

// presence reports that there is something to show.
type presence bool

// overTime adds the figures over time.
func (p *page) overTime(in *Input, d *pageData) {
	has := presence(len(in.Series.Seconds) > 1)
	if has {
		d.Series = columns(&in.Series)
		d.End = max(d.End, in.Series.Seconds[len(in.Series.Seconds)-1])
		most := slices.Index(in.Series.Used, slices.Max(in.Series.Used))
		d.Busiest = in.Series.Seconds[most]
		if w := in.Card.Window; w.To > w.From {
			d.Window = []float64{w.From, w.To}
		}
	}
	p.add(has, figure{
		ID: "allocation", Title: "Allocation and demand over time", Chart: true, Wide: true, Tall: true,
		Caption: "The top of the stack is what is there: GPUs on nodes that are open and have not failed. " +
			"A click shows that instant on the map; Ctrl and the wheel zoom all charts over time.",
		Formula: formula("utilisation.mean"), Table: allocationTable(&in.Series),
	})
	if in.Record != nil {
		d.Map = in.Record.chart()
		d.End = max(d.End, float64(d.Map.End))
		p.add(len(d.Map.Layout.Nodes) > 0, figure{
			ID: "map", Title: "Who is where", Map: true, Wide: true, Caption: mapCaption(d.Map),
		})
	}
}

func mapCaption(m *mapData) string {
	text := "A square is a GPU, a cluster of squares a node"
	if m.Layout.RackLevel != "" {
		text += ", and a block of nodes a domain of the level " + m.Layout.RackLevel
	}
	text += ". Which GPU of a node a gang has is not told: it is drawn on the first that are free. " +
		"Hover a gang to see it alone; a gang has the color of which least was to be seen when it started."
	if m.Omitted > 0 {
		text += " The map leaves out " + counted(m.Omitted, "stay") +
			" that lasted less than " + span(float64(m.OmittedBelow)) + "."
	}
	return text
}

// ofJobs adds the figures of jobs and their placements.
func (p *page) ofJobs(in *Input, d *pageData) {
	d.Waits = waits(in)
	p.add(len(d.Waits) > 0, figure{
		ID: "waits", Title: "How long jobs waited", Chart: true, Tall: true, Table: waitsTable(d.Waits),
		Caption: "Share of all jobs of the run, by size class; the dashed line counts each job by the GPU-hours " +
			"that it asks for. A line that ends below 100 % is of jobs some of which still wait.",
		Formula: formula("wait_seconds.mean"),
	})
	q := quality(in.Outcomes, in.classes())
	if len(q.Classes) > 0 {
		d.Quality = &q
	}
	samples := ""
	if in.Card.Quality.Every > 1 {
		samples = fmt.Sprintf(" Every %s. start is a sample.", strconv.Itoa(in.Card.Quality.Every))
	}
	p.add(len(q.Classes) > 0, figure{
		ID: "quality", Title: "Quality of placements by size", Chart: true, Tall: true, Table: qualityTable(&q),
		Caption: "Last start of each gang of several members." + samples, Formula: formula("quality.mean_q"),
	})
	has := presence(len(in.Series.Seconds) > 1)
	p.add(has, figure{
		ID: "space", Title: "Fragmentation and the largest placeable gang", Chart: true, Table: spaceTable(&in.Series),
		Caption: "Fragmentation is the part of the free GPUs that no gang of the trace's mix can use.",
		Formula: formula("fragmentation.mean") + " " + formula("largest_placeable.mean"),
	})
	p.add(has, figure{
		ID: "queue", Title: "Who waits", Chart: true, Table: queueTable(&in.Series),
		Caption: "Age of the job that came first of those that wait, since it came, and how many wait.",
	})
}

// ofTables adds the speed, and the tables that are read as such.
func (p *page) ofTables(in *Input, d *pageData) {
	if in.Record != nil {
		if l := in.Record.latency.data(); len(l.Below) > 0 {
			d.Latency = &l
		}
	}
	if d.Latency != nil {
		p.add(true, figure{
			ID: "latency", Title: "What decisions cost", Chart: true, Wide: true, Table: latencyTable(d.Latency),
			Caption: "Wall time on the machine that the header names; everything else on this page is virtual time.",
			Formula: formula("decision_ms.p99"),
		})
	}
	p.add(len(in.Card.Classes) > 0, figure{
		ID: "classes", Title: "Size classes", Table: classTable(&in.Card), Wide: true,
		Caption: "Jobs of the window.",
	})
	long := longest(in.Outcomes, 20)
	p.add(len(long) > 0, figure{
		ID: "longest", Title: "The " + count(len(long)) + " longest waits", Table: longestTable(long), Wide: true,
		Caption: "Instants are since the beginning. What a job waited is all its waiting, after preemptions too.",
	})
}
