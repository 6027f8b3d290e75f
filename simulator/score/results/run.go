package results

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"io"
	"path/filepath"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Options configure the writing of a result.
type Options struct {
	// Card is the head of the scorecard: the facts known before the run. It needs a scheduler.
	Card measure.Scorecard
	// Plain leaves the event log uncompressed.
	Plain bool
	// Failed is called once if the log cannot be written, so that a run can be ended early; nil for no call.
	Failed func(error)
	// Disk stores the files; nil for this machine's.
	Disk Disk
}

// Run is a result that is being written.
type Run struct {
	dir    string
	disk   Disk
	failed func(error)
	name   string
	file   io.WriteCloser
	zip    *gzip.Writer
	out    *bufio.Writer
	line   []byte
	// unsaved is the number of bytes that were written since a reader could last have all of them.
	unsaved int
	err     error
}

// saved is the number of bytes after which the log is synced to disk, so that a killed run leaves nearly all of it.
// Counting bytes, not time, makes the compressed logs of equal runs equal.
const saved = 1 << 18

// Create begins a result in a directory, which it makes if need be. An earlier result is replaced; a directory that
// holds anything else is bad input. A failed write is a *WriteError.
func Create(dir string, s *scenario.Scenario, o Options) (*Run, error) {
	r := &Run{dir: dir, disk: o.Disk, failed: o.Failed}
	if r.disk == nil {
		r.disk = files{}
	}
	if err := claim(r.disk, dir); err != nil {
		return nil, err
	}
	if err := r.disk.Make(dir); err != nil {
		return nil, &WriteError{dir, err}
	}
	card := o.Card
	card.Partial = Unfinished
	if err := putJSON(r.disk, r.path(CardFile), "  ", card); err != nil {
		return nil, err
	}
	for _, name := range replaced() {
		if err := r.disk.Remove(r.path(name)); err != nil {
			return nil, &WriteError{r.path(name), err}
		}
	}
	if err := putJSON(r.disk, r.path(SceneFile), "", Outlined(s)); err != nil {
		return nil, err
	}
	name := LogFile
	if o.Plain {
		name = PlainFile
	}
	return r, r.begin(name)
}

// path is the path of a file of the result.
func (r *Run) path(name string) string { return filepath.Join(r.dir, name) }

// begin opens the log.
func (r *Run) begin(name string) error {
	r.name = r.path(name)
	file, err := r.disk.Create(r.name)
	if err != nil {
		return &WriteError{r.name, err}
	}
	r.file = file
	r.out = bufio.NewWriterSize(file, 1<<16)
	if name == LogFile {
		// The header has neither a name nor a time: it has to be the same for equal runs.
		r.zip = gzip.NewWriter(r.out)
	}
	return nil
}

// Happens writes an event into the log. After a failure it does nothing: Finish reports the failure.
func (r *Run) Happens(e engine.Event) {
	if r.err != nil {
		return
	}
	r.line = appendLine(r.line[:0], e)
	r.unsaved += len(r.line)
	var err error
	if r.zip != nil {
		_, err = r.zip.Write(r.line)
	} else {
		_, err = r.out.Write(r.line)
	}
	if err == nil && r.unsaved >= saved {
		err = r.save()
	}
	if err != nil {
		r.fail(err)
	}
}

// Decides is not for the log: it is about the machine.
func (r *Run) Decides(engine.Decision) {}

// save syncs the log to the disk.
func (r *Run) save() error {
	r.unsaved = 0
	if r.zip != nil {
		if err := r.zip.Flush(); err != nil {
			return err //nolint:wrapcheck // the caller names the file
		}
	}
	return r.out.Flush() //nolint:wrapcheck // the caller names the file
}

// fail records the first failure, and reports it.
func (r *Run) fail(err error) {
	if r.err != nil {
		return
	}
	r.err = &WriteError{r.name, err}
	if r.failed != nil {
		r.failed(r.err)
	}
}

// end closes the log.
func (r *Run) end() {
	err := r.err
	if err == nil && r.zip != nil {
		err = r.zip.Close()
	}
	if err == nil {
		err = r.out.Flush()
	}
	if closing := r.file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		r.fail(err)
	}
}

// Finish ends the result: the report that is written by the given function (nil for none), and then the scorecard in
// the place of the one that said partial. A card that is partial itself leaves the result so, with its reason. If
// anything cannot be written, the result stays partial and the error names the file; it is a *WriteError. A Run is
// finished once.
func (r *Run) Finish(card measure.Scorecard, report func(io.Writer) error) error {
	r.end()
	last, err := card, r.err
	if err == nil && report != nil {
		err = put(r.disk, r.path(ReportFile), report)
	}
	if err != nil {
		last.Partial = cmp.Or(last.Partial, err.Error())
	}
	// On a full disk this may fail too. Then the first card stays, which is partial.
	if writing := putJSON(r.disk, r.path(CardFile), "  ", last); err == nil {
		err = writing
	}
	return err
}
