package cost_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/cost"
)

var rewrite = flag.Bool("rewrite", false, "write the tables into docs/simulator-costs.md")

// The tables of docs/simulator-costs.md are those that the model reckons with.
func TestTables_StandOnThePage(t *testing.T) {
	const page, begin, end = "../../docs/simulator-costs.md", "<!-- tables -->\n", "<!-- end of tables -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	found, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the tables", page)
	}
	if found == cost.Tables() {
		return
	}
	if !*rewrite {
		t.Fatalf("%s has other tables; run go test ./simulator/cost -rewrite. Want\n%s", page, cost.Tables())
	}
	if err := os.WriteFile(page, []byte(before+begin+cost.Tables()+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
