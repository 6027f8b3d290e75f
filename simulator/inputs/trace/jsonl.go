package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// mostLine is the longest line, in bytes: an event may name all nodes of a large fleet.
const mostLine = 16 << 20

// JSONL reads a file in the project's own format (see the package), compressed if its name ends in .gz. A file that
// cannot be used is bad input.
func JSONL(path string) (Trace, error) {
	return open(path, ReadJSONL)
}

// ReadJSONL is JSONL of text that was read elsewhere; file is its name in errors, and the trace's if the text has none.
func ReadJSONL(in io.Reader, file string) (Trace, error) {
	r := &jsonl{file: file, trace: Trace{Name: file}, named: map[string]int{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostLine)
	for r.err == nil && lines.Scan() {
		r.line++
		if text := bytes.TrimSpace(lines.Bytes()); len(text) > 0 {
			r.read(text)
		}
	}
	if err := lines.Err(); err != nil { // the last line may be half a line: hence the error
		r.err = badinput.At(file, 0, fmt.Sprintf("it cannot be read beyond line %d: %s", r.line, err),
			"write one object a line, or fetch the file again")
	}
	r.follow()
	if r.err == nil && len(r.trace.Jobs)+len(r.trace.Events) == 0 {
		r.err = badinput.At(file, 0, "there is no job and no event", `write a line such as {"job": {…}} for each`)
	}
	if r.err != nil {
		return Trace{}, r.err
	}
	return r.trace.sorted(), nil
}

// WriteJSONL writes a trace in the project's own format. ReadJSONL of it is the same trace.
func WriteJSONL(out io.Writer, t Trace) error {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	put := func(l jsonLine) error {
		if err := lines.Encode(l); err != nil {
			return fmt.Errorf("writing the trace %s: %w", t.Name, err)
		}
		return nil
	}
	if err := put(jsonLine{Trace: &jsonTrace{t.Name, t.Source, t.Synthetic}}); err != nil {
		return err
	}
	for _, j := range t.Jobs {
		if err := put(jsonLine{Job: jsonOfJob(j)}); err != nil {
			return err
		}
	}
	for _, e := range t.Events {
		if err := put(jsonLine{Event: &jsonEvent{span(e.At), e.Kind, e.Nodes}}); err != nil {
			return err
		}
	}
	return nil
}

// jsonl is a file that is being read. After the first thing that is wrong nothing more is read.
type jsonl struct {
	file  string
	line  int
	trace Trace
	// named is the line of each job, at those of the events.
	named map[string]int
	at    []int
	err   error
}

func (r *jsonl) refuse(line int, why refusal) {
	if r.err == nil && why != (refusal{}) {
		r.err = badinput.At(r.file, line, why.what, why.mend)
	}
}

// read takes one line.
func (r *jsonl) read(text []byte) {
	l, why := parseLine(text)
	r.refuse(r.line, why)
	switch {
	case r.err != nil:
	case l.Trace != nil:
		r.header(*l.Trace)
	case l.Job != nil:
		r.job(l.Job.job())
	default:
		e := Event{At: l.Event.At.duration(), Kind: l.Event.Kind, Nodes: l.Event.Nodes}
		r.refuse(r.line, e.check())
		r.trace.Events, r.at = append(r.trace.Events, e), append(r.at, r.line)
	}
}

func (r *jsonl) header(h jsonTrace) {
	switch {
	case r.line > 1:
		r.refuse(r.line, refusal{"the line of the trace is not the first", "move it to the top"})
	case h.Name == "":
		r.refuse(r.line, refusal{"the trace has no name", "give it one, or leave the line out"})
	}
	r.trace.Name, r.trace.Source, r.trace.Synthetic = h.Name, h.Source, h.Synthetic
}

func (r *jsonl) job(j Job) {
	r.refuse(r.line, j.check())
	if line, ok := r.named[j.ID]; ok {
		r.refuse(r.line, refusal{
			fmt.Sprintf("job %s is there already, in line %d", j.ID, line), "give each job an id of its own",
		})
	}
	r.named[j.ID] = r.line
	r.trace.Jobs = append(r.trace.Jobs, j)
}

// follow plays the events in their order, whatever that of their lines is.
func (r *jsonl) follow() {
	order := make([]int, len(r.at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.trace.Events[a].At, r.trace.Events[b].At) })
	nodes := fate{}
	for _, i := range order {
		r.refuse(r.at[i], nodes.happens(r.trace.Events[i]))
	}
}

// parseLine makes an object of one key of a line.
func parseLine(text []byte) (jsonLine, refusal) {
	var l jsonLine
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&l); err != nil {
		return l, unparsed(err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return l, refusal{"there is more on the line than one object", "write one object a line"}
	}
	keys := 0
	for _, there := range []bool{l.Trace != nil, l.Job != nil, l.Event != nil} {
		if there {
			keys++
		}
	}
	if keys != 1 {
		return l, refusal{
			fmt.Sprintf(
				"the object has %d of the keys trace, job and event",
				keys,
			),
			"write one object with one of them a line",
		}
	}
	return l, refusal{}
}

// unparsed names the fault of a line in the user's words rather than in Go's.
func unparsed(err error) refusal {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return refusal{
			fmt.Sprintf("%s cannot be a JSON %s", cmp.Or(kind.Field, "the line"), kind.Value),
			"write it as the format says, durations as texts such as \"90s\"",
		}
	}
	if wrong, ok := errors.AsType[*spanError](err); ok {
		return refusal{fmt.Sprintf("%q is no duration", wrong.text), "write one such as 90s or 26h30m"}
	}
	what := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(what, "unknown field") {
		return refusal{what, "remove it, or spell it as the format does"}
	}
	return refusal{"the line is not JSON: " + what, "write one whole object a line"}
}
