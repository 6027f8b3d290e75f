// Package report draws the results of a run as one HTML file that needs nothing else: no network, no server, no other
// file. It opens from a disk, prints, and can be sent by mail.
//
//	recorder := report.NewRecorder(scenario)        // an engine.Watcher
//	…
//	err := report.Write(w, report.Input{Card: card, Series: series, Outcomes: outcomes, Record: recorder})
//
// Numbers, captions and tables are written by Go and are there without JavaScript; charts are drawn in the browser, by
// Apache ECharts and by page/map.js, from one columnar JSON object that is compressed into the page. A content security
// policy in the page forbids it every request.
//
// A page has at most 2,000 instants of each series, 200 points of each distribution and 400,000 stretches of nodes that
// gangs held. If a run had more of these, the shortest stays are left out of the map, with a note on the page.
package report
