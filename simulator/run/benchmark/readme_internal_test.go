package benchmark

import (
	"flag"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/integration/page"
	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/run/simulation"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
)

var readme = flag.Bool("readme", false, "write what the quoted comparison says into the README")

// quoted is the comparison that the README quotes: the most contended 5,000 jobs of c3.
func quoted() entry {
	const load = 2.5
	e := entry{
		names:      simulation.Names{Fleet: "c3", Trace: "acme-seren"},
		options:    simulation.Options{Load: load, Estimates: estimated, Quick: true},
		schedulers: []string{schedulers.Lockstep, baseline.KueueBestFit, baseline.SlurmBlock},
		seeds:      upTo(usual),
	}
	e.options.Costs.Slowdown = published
	return e
}

// The README's figures about rivals are those that its command prints, word for word.
func TestReadme_Figures(t *testing.T) {
	e := quoted()
	commands := "```sh\nbin/" + e.command(e.schedulers, e.seeds) + "\n```\n"
	input, err := simulation.Open(e.names, e.options)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := input.Compare(t.Context(), simulation.Comparison{
		Schedulers: e.schedulers, Seeds: e.seeds, Wall: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	table, err := compare.Runs(simulation.Cards(outcomes))
	if err != nil {
		t.Fatal(err)
	}
	page.Page{
		File:   "README.md",
		Marker: "go test ./simulator/run/benchmark",
		Write:  *readme,
		Mend:   "go test ./simulator/run/benchmark -run Readme -readme",
	}.HasSection(t, "figures", commands+"\n* "+strings.Join(table.InWords(), "\n* ")+"\n")
}
