package cost_test

import (
	"flag"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/integration/page"
)

var rewrite = flag.Bool("rewrite", false, "write the tables into docs/simulator-costs.md")

// The tables of docs/simulator-costs.md are those that the model reckons with.
func TestTables_StandOnThePage(t *testing.T) {
	page.Page{
		File:   "docs/simulator-costs.md",
		Marker: "go test ./simulator/inputs/cost",
		Write:  *rewrite,
		Mend:   "go test ./simulator/inputs/cost -rewrite",
	}.HasSection(t, "tables", cost.Tables())
}
