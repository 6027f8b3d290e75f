package campaign

import (
	"flag"
	"os"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/baseline"
	"github.com/lockstep-project/lockstep/simulator/compare"
	"github.com/lockstep-project/lockstep/simulator/experiment"
	"github.com/lockstep-project/lockstep/simulator/schedulers"
)

var readme = flag.Bool("readme", false, "write what the quoted contest says into the README")

// quoted is the contest that the README quotes: the most contended 5,000 jobs of c3.
func quoted() entry {
	const load = 2.5
	e := entry{
		names:      experiment.Names{Fleet: "c3", Trace: "acme-seren"},
		options:    experiment.Options{Load: load, Estimates: estimated, Quick: true},
		schedulers: []string{schedulers.Lockstep, baseline.KueueBestFit, baseline.SlurmBlock},
		seeds:      upTo(usual),
	}
	e.options.Costs.Slowdown = published
	return e
}

// What the README says about rivals is what its command says, word for word.
func TestReadme_Figures(t *testing.T) {
	const page, begin, end = "../../README.md", "<!-- figures:begin -->\n", "<!-- figures:end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	found, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for figures", page)
	}
	e := quoted()
	commands := "```sh\nbin/" + e.command(e.schedulers, e.seeds) + "\n```\n"
	if !strings.HasPrefix(found, commands) && !*readme {
		t.Errorf("%s has another command than %s", page, commands)
	}
	input, err := experiment.Open(e.names, e.options)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := input.Contest(t.Context(), experiment.Contest{
		Schedulers: e.schedulers, Seeds: e.seeds, Wall: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	table, err := compare.Runs(experiment.Cards(outcomes))
	if err != nil {
		t.Fatal(err)
	}
	want := commands + "\n* " + strings.Join(table.InWords(), "\n* ") + "\n"
	switch {
	case found == want:
	case !*readme:
		t.Errorf(
			"%s says\n%sand the command says\n%s; run go test ./simulator/campaign -run Readme -readme",
			page,
			found,
			want,
		)
	default:
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
