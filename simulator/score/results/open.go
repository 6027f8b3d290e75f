package results

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Result is a result that was written.
type Result struct {
	// Dir is its directory.
	Dir string
	// Card is the scorecard. If its Partial is not empty, it is the reason why the result is not whole, and the other
	// numbers may be 0.
	Card  measure.Scorecard
	Scene Outline

	log  string
	disk Disk
}

// Open reads a result back. A partial one can be read: Card.Partial says that it is. Anything else is bad input.
func Open(dir string) (*Result, error) { return OpenOn(files{}, dir) }

// OpenOn is Open on another disk than this machine's.
func OpenOn(disk Disk, dir string) (*Result, error) {
	const mend = "name a directory that lockstep simulate --out has written"
	names, err := disk.List(dir)
	switch {
	case err != nil:
		return nil, &badinput.Error{Where: dir, What: "no result can be read: " + err.Error(), Mend: mend}
	case names == nil:
		return nil, &badinput.Error{Where: dir, What: "there is no such directory", Mend: mend}
	case !slices.Contains(names, CardFile):
		return nil, &badinput.Error{Where: dir, What: "the directory has no " + CardFile, Mend: mend}
	}
	r := &Result{Dir: dir, disk: disk}
	if r.Card, err = readCard(disk, dir); err != nil {
		return nil, &badinput.Error{Where: dir, What: err.Error(), Mend: mend}
	}
	for _, name := range []string{LogFile, PlainFile} {
		if slices.Contains(names, name) {
			r.log = filepath.Join(dir, name)
		}
	}
	if r.log == "" || !slices.Contains(names, SceneFile) {
		what := "the result has no " + SceneFile + " or no " + LogFile
		if r.Card.Partial != "" {
			what = "the result is partial, and ends before anything happened: " + r.Card.Partial
		}
		return nil, &badinput.Error{Where: dir, What: what, Mend: "run it again"}
	}
	text, err := readAll(disk, filepath.Join(dir, SceneFile))
	if err == nil {
		err = json.Unmarshal(text, &r.Scene)
	}
	if err != nil {
		file := filepath.Join(dir, SceneFile)
		return nil, badinput.At(file, 0, "the scene cannot be read: "+err.Error(), "run it again")
	}
	return r, nil
}

// Events returns the events in order; it reads the log as it proceeds. The log of a partial result may be cut off, and
// then ends with the last whole line. Anything else that cannot be read is one error, with file and line, and ends the
// sequence.
func (r *Result) Events() iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		in, closer, err := r.open()
		if err != nil {
			if !r.cut(err) {
				yield(engine.Event{}, badinput.At(r.log, 0, err.Error(), "run it again"))
			}
			return
		}
		defer closer()
		for number := 1; ; number++ {
			e, err := r.next(in)
			if errors.Is(err, io.EOF) || err != nil && r.cut(err) {
				return
			}
			if err != nil {
				err = badinput.At(r.log, number, err.Error(), "run it again")
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// cut reports whether the error is that of a killed run's result.
func (r *Result) cut(err error) bool {
	return r.Card.Partial != "" && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF))
}

// open opens the log for reading.
func (r *Result) open() (*bufio.Reader, func(), error) {
	file, err := r.disk.Open(r.log)
	if err != nil {
		return nil, nil, err
	}
	closer := func() { file.Close() } //nolint:errcheck // nothing was written
	if filepath.Base(r.log) == PlainFile {
		return bufio.NewReader(file), closer, nil
	}
	unzip, err := gzip.NewReader(file)
	if err != nil {
		closer()
		return nil, nil, fmt.Errorf("decompressing: %w", err)
	}
	return bufio.NewReader(unzip), closer, nil
}

// next reads a line: io.EOF after the last one, io.ErrUnexpectedEOF for one that is cut off.
func (r *Result) next(in *bufio.Reader) (engine.Event, error) {
	line, err := in.ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return engine.Event{}, fmt.Errorf("reading a line: %w", err)
	}
	e, err := parseLine(line)
	if err != nil {
		return e, err
	}
	return e, within(e, &r.Scene)
}
