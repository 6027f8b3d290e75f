package benchmark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// ledger has the scorecards of a comparison's runs in one file, a line for each run in the order of their names: the
// inputs of the document, without the event logs, so that the repository can store it.
type ledger struct {
	path  string
	cards map[string]measure.Scorecard
}

// entered is a line of a ledger.
type entered struct {
	Run  string            `json:"run"`
	Card measure.Scorecard `json:"card"`
}

// openLedger reads the ledger of a comparison, which is empty if there is no file.
func openLedger(dir, comparison string) (*ledger, error) {
	l := &ledger{filepath.Join(dir, comparison+".jsonl"), make(map[string]measure.Scorecard)}
	text, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading scorecards: %w", err)
	}
	lines := json.NewDecoder(bytes.NewReader(text))
	for {
		var line entered
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return l, nil
		case err != nil:
			return nil, fmt.Errorf("reading the scorecards of %s: %w", l.path, err)
		}
		l.cards[line.Run] = line.Card
	}
}

// Find returns the scorecard of a run, if it is there.
func (l *ledger) Find(run string) (measure.Scorecard, bool) {
	card, ok := l.cards[run]
	return card, ok
}

// Keep stores the scorecard of a run. Those of other commits are deleted: a comparison is of one.
func (l *ledger) Keep(run string, card measure.Scorecard) error {
	maps.DeleteFunc(l.cards, func(_ string, other measure.Scorecard) bool { return other.Commit != card.Commit })
	l.cards[run] = card
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return fmt.Errorf("keeping scorecards: %w", err)
	}
	return capture.Publish(l.path, func(w io.Writer) error {
		out := json.NewEncoder(w)
		for _, name := range slices.Sorted(maps.Keys(l.cards)) {
			if err := out.Encode(entered{name, l.cards[name]}); err != nil {
				return fmt.Errorf("writing the scorecard of %s: %w", name, err)
			}
		}
		return nil
	})
}

// commit is that of the cards; empty if there are none, or of several.
func (l *ledger) commit() string {
	commit := ""
	for _, card := range l.cards {
		if commit != "" && commit != card.Commit {
			return ""
		}
		commit = card.Commit
	}
	return commit
}
