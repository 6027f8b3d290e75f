package nodehealth_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
)

// play writes a script into a ledger of 40 nodes and returns its answers at the end: the nodes in quarantine for the
// gang a/x, and with a minus the one that it avoids; then those in quarantine for namespace b. A line is a minute and
// its event:
//
//	5 refused n1 a
//	7 failed n1 a/x (it had run for the minutes since it failed last, or since 0)
//	8 started a/x   (without the node that it avoids)
//	9 opened n1
//	9 gone a/x
func play(t *testing.T, limits nodehealth.Limits, script string, minute int) string {
	t.Helper()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return begin.Add(time.Duration(minute) * time.Minute) }
	ledger, last := nodehealth.NewLedger(limits), make(map[string]int)
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		when, err := strconv.Atoi(words[0])
		if err != nil {
			t.Fatal(err)
		}
		switch what := words[2]; words[1] {
		case "refused":
			ledger.Refused(what, words[3], at(when))
		case "failed":
			gang := words[3]
			team, _, _ := strings.Cut(gang, "/")
			ledger.Failed(what, team, types.UID(gang), at(when).Sub(at(last[gang])), at(when))
			last[gang] = when
		case "started":
			ledger.Started(types.UID(what), at(when))
		case "opened":
			ledger.Forgive(what)
		case "gone":
			ledger.Forget(types.UID(what), at(when))
		default:
			t.Fatalf("unknown: %s", line)
		}
	}
	own := ledger.Quarantined("a", 40, at(minute))
	if node := ledger.Avoids("a/x"); node != "" {
		own = append(own, "-"+node)
	}
	return strings.Join(own, " ") + " | " + strings.Join(ledger.Quarantined("b", 40, at(minute)), " ")
}

func usual() nodehealth.Limits { return nodehealth.Limits{HalfLife: 2 * time.Hour, MostPercent: 5} }

// twice is a gang that fails twice on a node and starts without it.
const twice = "1 failed n1 a/x\n3 failed n1 a/x\n4 started a/x\n"

func TestLedger(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		minute int
		want   string
	}{
		"one strike is none":       {"0 refused n1 a", 0, " | "},
		"two":                      {"0 refused n1 a\n1 refused n1 a", 2, "n1 | "},
		"two, of two namespaces":   {"0 refused n1 a\n1 refused n1 c", 2, "n1 | n1"},
		"ten, of another one":      {strings.Repeat("0 refused n1 c\n", 10), 2, " | "},
		"on two nodes":             {"0 refused n1 a\n1 refused n2 a", 2, " | "},
		"a minute before the end":  {"0 refused n1 a\n0 refused n1 a", 49, "n1 | "},
		"the end":                  {"0 refused n1 a\n0 refused n1 a", 50, " | "},
		"more strikes last longer": {"0 refused n1 a\n0 refused n1 a\n0 refused n1 a", 119, "n1 | "},
		"far apart":                {"0 refused n1 a\n121 refused n1 a", 121, " | "},
		"opened":                   {"0 refused n1 a\n1 refused n1 a\n2 opened n1", 3, " | "},
		"one in twenty at most, the worst ones": {
			"0 refused n1 a\n0 refused n1 a\n1 refused n2 a\n1 refused n2 a\n2 refused n3 a\n2 refused n3 a", 3, "n2 n3 | ",
		},
		"a gang failed once":            {"1 failed n1 a/x", 2, " | "},
		"and again, there":              {"1 failed n1 a/x\n3 failed n1 a/x", 4, "-n1 | "},
		"and again, elsewhere":          {"1 failed n1 a/x\n3 failed n2 a/x", 4, " | "},
		"ranks that follow the first":   {"1 failed n1 a/x\n1 failed n1 a/x\n1 failed n2 a/x", 4, " | "},
		"many gangs, once each":         {"1 failed n1 a/x\n1 failed n1 a/y\n1 failed n1 b/z", 4, " | "},
		"a trial goes on":               {twice, 13, "-n1 | "},
		"a trial that the node loses":   {twice, 14, "n1 | "},
		"it lasts as long as the run":   {"60 failed n1 a/x\n62 failed n1 a/x\n63 started a/x", 122, "-n1 | "},
		"and ends":                      {"60 failed n1 a/x\n62 failed n1 a/x\n63 started a/x", 123, "n1 | "},
		"it fails there too":            {twice + "6 failed n2 a/x", 30, " | "},
		"twice":                         {twice + "6 failed n2 a/x\n8 failed n2 a/x\n9 started a/x", 30, "-n2 | "},
		"it is gone too early":          {twice + "6 gone a/x", 30, " | "},
		"it is gone late enough":        {twice + "16 gone a/x", 30, "n1 | "},
		"the node is opened meanwhile":  {twice + "6 opened n1", 30, " | "},
		"two namespaces say so":         {twice + "1 failed n1 c/x\n3 failed n1 c/x\n4 started c/x", 14, "n1 | n1"},
		"a namespace, and its refusal":  {twice + "5 refused n1 a", 14, "n1 | "},
		"and one of another":            {twice + "5 refused n1 c", 14, "n1 | n1"},
		"two gangs of one namespace":    {twice + "1 failed n1 a/y\n3 failed n1 a/y\n4 started a/y", 14, "n1 | "},
		"a gang that never starts":      {"1 failed n1 a/x\n3 failed n1 a/x", 300, "-n1 | "},
		"started, and nothing happened": {"4 started a/x", 30, " | "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := play(t, usual(), test.script, test.minute); got != test.want {
				t.Errorf("in quarantine: %s, want %s", got, test.want)
			}
		})
	}
}

// A tenant has gangs fail on all nodes, as it likes, and run well elsewhere. It closes few nodes to itself, and none to
// others.
func TestLedger_Attacked(t *testing.T) {
	var script strings.Builder
	for i := range 400 {
		fmt.Fprintf(
			&script,
			"%d failed n%d a/%d\n%d failed n%d a/%d\n%d started a/%d\n",
			i,
			i%40,
			i,
			i+2,
			i%40,
			i,
			i+3,
			i,
		)
	}
	if got := play(t, usual(), script.String(), 420); !strings.HasSuffix(got, " | ") || len(strings.Fields(got)) != 3 {
		t.Errorf("in quarantine: %s", got)
	}
}

func TestLedger_Off(t *testing.T) {
	off := nodehealth.Limits{MostPercent: 5}
	if got := play(t, off, strings.Repeat("0 refused n1 a\n", 5)+twice, 30); got != " | " {
		t.Errorf("in quarantine: %s", got)
	}
}

// Left returns the time at which the quarantine ends.
func TestLedger_Left(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ledger := nodehealth.NewLedger(nodehealth.Limits{HalfLife: time.Hour, MostPercent: 5})
	if left := ledger.Left("n1", "a", begin); left != 0 {
		t.Errorf("%s left without a strike", left)
	}
	for i := range 3 {
		ledger.Refused("n1", "a", begin.Add(time.Duration(i)*7*time.Minute))
	}
	now := begin.Add(15 * time.Minute)
	left := ledger.Left("n1", "a", now)
	before, after := now.Add(left-time.Second), now.Add(left+time.Second)
	if len(ledger.Quarantined("a", 1, before)) != 1 || len(ledger.Quarantined("a", 1, after)) != 0 {
		t.Errorf("it is said to end after %s: in quarantine %v before, %v after", left,
			ledger.Quarantined("a", 1, before), ledger.Quarantined("a", 1, after))
	}
}
