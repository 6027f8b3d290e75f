package benchmark

import (
	"os"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/run/simulation"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// A ledger returns on another machine the scorecards stored on one, and forgets those of an earlier commit.
func TestLedger(t *testing.T) {
	dir := t.TempDir()
	open := func() *ledger {
		l, err := openLedger(dir, "c1")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	of := func(commit string, seed uint64) measure.Scorecard {
		return measure.Scorecard{Scheduler: "random", Commit: commit, Seed: seed}
	}
	for seed, commit := range []string{"old", "old", "new", "new"} {
		l := open()
		name := simulation.RunName("random", uint64(seed))
		if _, ok := l.Find(name); ok {
			t.Errorf("%s is there before it was played", name)
		}
		if err := l.Keep(name, of(commit, uint64(seed))); err != nil {
			t.Fatal(err)
		}
		if got := open().commit(); got != commit {
			t.Errorf("the cards are of commit %q, want %q", got, commit)
		}
	}
	l := open()
	if card, ok := l.Find("random-3"); !ok || len(l.cards) != 2 || card.Seed != 3 {
		t.Errorf("the ledger has %v, want the cards of seeds 2 and 3", l.cards)
	}
	if err := os.WriteFile(l.path, []byte(`{"run":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLedger(dir, "c1"); err == nil || !strings.Contains(err.Error(), l.path) {
		t.Errorf("a torn ledger gives %v, want an error that names the file", err)
	}
}

// The document is made of seeds that all schedulers have played, and lists the missing seeds and comparisons.
func TestDocument_Partial(t *testing.T) {
	o := Options{
		Dir:       t.TempDir(),
		Cards:     t.TempDir(),
		Only:      "fragment-then-gang",
		Quick:     true,
		Committed: "../../inputs/trace/testdata/openb",
		Wall:      clock.RealClock{},
		Say:       func(string) {},
	}
	if _, err := Play(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Found, o.Quick = true, false
	document, err := Play(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := document.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"fragment-then-gang 1 of 5", "--seeds 1\n", "| lockstep | "} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%q is not in the document:\n%s", part, text.String())
		}
	}
	o.Only = "c1"
	if document, err = Play(
		t.Context(),
		o,
	); err != nil || len(document.missing) != 1 ||
		len(document.comparisons) != 0 {
		t.Errorf(
			"a comparison without scorecards gives %v and %d comparisons, missing %q",
			err,
			len(document.comparisons),
			document.missing,
		)
	}
}
