package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page
var pages embed.FS

// page is the input of the template.
type page struct {
	Kind, Title string
	Alarms      []alarm
	Notices     []string
	Facts       []fact
	Tiles       []tile
	Figures     []figure
	Verdict     *verdict
	Paired      *pairedTable
	Foot        string
	Style       template.CSS
	Data        template.JS
	Library     template.JS
	Scripts     []template.JS
}

// Write writes the report of a run. Errors are of the writer, or of a series whose columns have different lengths.
func Write(w io.Writer, in Input) error {
	if err := in.check(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	card := &in.Card
	p := page{
		Kind:   "Lockstep: a run in virtual time",
		Title:  fmt.Sprintf("%s on %s, %s", card.Scheduler, card.Fleet, card.Trace),
		Alarms: alarms(card), Notices: notices(card), Facts: facts(card),
	}
	var d pageData
	if len(card.AllocationAtArrival) > 0 {
		p.Kind = "Lockstep: arrivals only"
		d.Arrival = []arrival{arrivalOf(card)}
		p.arrivals(&d)
	} else {
		p.Tiles = tiles(card)
		p.overTime(&in, &d)
		p.ofJobs(&in, &d)
		p.ofTables(&in, &d)
	}
	p.Foot = "Made by lockstep simulate."
	return p.write(w, &d)
}

// write fills the template.
func (p *page) write(w io.Writer, d *pageData) error {
	data, err := packed(d)
	if err != nil {
		return err
	}
	charts, err := Library()
	if err != nil {
		return err
	}
	// These are our own files, or base64: nothing that a user wrote is in them unescaped.
	p.Data, p.Library = template.JS(`"`+data+`"`), template.JS(charts)
	p.Foot += " Charts: Apache ECharts " + LibraryVersion + ", Apache License 2.0. This file loads nothing."
	style, err := pages.ReadFile("page/page.css")
	if err != nil {
		return fmt.Errorf("reading the page's style: %w", err)
	}
	p.Style = template.CSS(style)
	for _, name := range []string{"unpack", "charts", "compared", "map", "start"} {
		text, err := pages.ReadFile("page/" + name + ".js")
		if err != nil {
			return fmt.Errorf("reading the page's scripts: %w", err)
		}
		p.Scripts = append(p.Scripts, template.JS(text))
	}
	filled, err := template.ParseFS(pages, "page/page.html")
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	if err := filled.Execute(w, p); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
