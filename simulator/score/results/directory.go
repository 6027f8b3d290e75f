package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Names of the files in a result's directory.
const (
	CardFile   = "scorecard.json"
	SceneFile  = "scene.json"
	LogFile    = "events.jsonl.gz"
	PlainFile  = "events.jsonl"
	ReportFile = "report.html"
)

// unfinished ends the names of files that are still being written.
const unfinished = ".unfinished"

// Unfinished is the reason for a partial result if no other is known.
const Unfinished = "the run was not finished: it was killed, or is still going on"

// replaced are the files that a new run does away with; the scorecard is written over.
func replaced() []string {
	return []string{
		SceneFile, LogFile, PlainFile, ReportFile,
		CardFile + unfinished, SceneFile + unfinished, ReportFile + unfinished,
	}
}

// claim refuses a directory that holds anything that is not an earlier result.
func claim(disk Disk, dir string) error {
	const mend = "name a directory that is empty, is not there yet, or holds an earlier result"
	names, err := disk.List(dir)
	if err != nil {
		return &badinput.Error{Where: dir, What: "results cannot be put there: " + err.Error(), Mend: mend}
	}
	ours := append(replaced(), CardFile)
	begun := true
	for _, name := range names {
		if !slices.Contains(ours, name) {
			return &badinput.Error{
				Where: dir, What: "the directory holds " + name + ", which is no file of a result", Mend: mend,
			}
		}
		// Killed while its first file was being written, a run leaves this and nothing else.
		begun = begun && name == CardFile+unfinished
	}
	if begun {
		return nil
	}
	if _, err := readCard(disk, dir); err != nil {
		return &badinput.Error{Where: dir, What: "the files there are not those of an earlier result", Mend: mend}
	}
	return nil
}

// readCard reads the scorecard of a directory.
func readCard(disk Disk, dir string) (measure.Scorecard, error) {
	name := filepath.Join(dir, CardFile)
	text, err := readAll(disk, name)
	if err != nil {
		return measure.Scorecard{}, err
	}
	var card measure.Scorecard
	if err := json.Unmarshal(text, &card); err != nil {
		return card, fmt.Errorf("reading %s: %w", name, err)
	}
	if card.Scheduler == "" {
		return card, fmt.Errorf("reading %s: it names no scheduler", name)
	}
	return card, nil
}

func readAll(disk Disk, name string) ([]byte, error) {
	f, err := disk.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return text, nil
}

// put writes a file under a name for the time being, and gives it its own when it is whole. Nothing is left of one that
// cannot be written.
func put(disk Disk, name string, write func(io.Writer) error) error {
	f, err := disk.Create(name + unfinished)
	if err != nil {
		return &WriteError{name, err}
	}
	err = write(f)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = disk.Rename(name+unfinished, name)
	}
	if err != nil {
		return &WriteError{name, errors.Join(err, disk.Remove(name+unfinished))}
	}
	return nil
}

// putJSON writes a value as one indented JSON object, or on one line if indent is empty.
func putJSON(disk Disk, name, indent string, value any) error {
	return put(disk, name, func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		out.SetIndent("", indent)
		if err := out.Encode(value); err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
		return nil
	})
}
