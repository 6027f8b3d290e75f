package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// appendLine appends an event as a line of the log. It is written by hand because a replay reports a hundred thousand
// of them a second.
func appendLine(to []byte, e engine.Event) []byte {
	b := append(to, `{"t":`...)
	b = appendSeconds(b, e.At)
	b = append(b, `,"kind":`...)
	b = strconv.AppendQuote(b, string(e.Kind))
	if e.Job != engine.None {
		b = append(b, `,"job":`...)
		b = strconv.AppendInt(b, int64(e.Job), 10)
	}
	if e.Running != engine.None {
		b = append(b, `,"running":`...)
		b = strconv.AppendInt(b, int64(e.Running), 10)
	}
	if len(e.Nodes) > 0 {
		b = append(b, `,"nodes":`...)
		b = appendNodes(b, e.Nodes)
	}
	switch {
	case e.Kind == engine.Leased && e.From == scenario.Forever:
		b = append(b, `,"from":null`...)
	case e.Kind == engine.Leased:
		b = append(b, `,"from":`...)
		b = appendSeconds(b, e.From)
	}
	return append(b, "}\n"...)
}

func appendNodes(to []byte, nodes []int) []byte {
	b, before := to, byte('[')
	for _, node := range nodes {
		b = append(b, before)
		b = strconv.AppendInt(b, int64(node), 10)
		before = ','
	}
	return append(b, ']')
}

// appendSeconds appends a duration as an exact decimal number of seconds.
func appendSeconds(to []byte, d time.Duration) []byte {
	b, whole, rest := to, d/time.Second, d%time.Second
	if d < 0 {
		b, whole, rest = append(b, '-'), -whole, -rest
	}
	b = strconv.AppendInt(b, int64(whole), 10)
	if rest != 0 {
		b = append(b, '.')
		b = append(b, strconv.FormatInt(int64(time.Second+rest), 10)[1:]...)
		b = bytes.TrimRight(b, "0")
	}
	return b
}

// row is a line of the log as JSON has it.
type row struct {
	T       *json.Number `json:"t"`
	Kind    engine.Kind  `json:"kind"`
	Job     *int         `json:"job"`
	Running *int         `json:"running"`
	Nodes   []int        `json:"nodes"`
	From    *json.Number `json:"from"`
}

// parseLine parses a line of appendLine.
func parseLine(line []byte) (engine.Event, error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var r row
	if err := decoder.Decode(&r); err != nil {
		return engine.Event{}, fmt.Errorf("decoding an event: %w", err)
	}
	if r.T == nil || r.Kind == "" {
		return engine.Event{}, errors.New("an event without its instant or its kind")
	}
	e := engine.Event{Kind: r.Kind, Job: engine.None, Running: engine.None, Nodes: r.Nodes}
	var err error
	if e.At, err = parseSeconds(*r.T); err != nil {
		return e, err
	}
	if r.Job != nil {
		e.Job = *r.Job
	}
	if r.Running != nil {
		e.Running = *r.Running
	}
	switch {
	case r.Kind == engine.Leased && r.From == nil:
		e.From = scenario.Forever
	case r.From != nil:
		e.From, err = parseSeconds(*r.From)
	}
	return e, err
}

// parseSeconds parses the output of appendSeconds, exactly.
func parseSeconds(n json.Number) (time.Duration, error) {
	d, err := time.ParseDuration(n.String() + "s")
	if err != nil {
		return 0, fmt.Errorf("reading an instant: %w", err)
	}
	return d, nil
}

// within reports whether all numbers of the event are of the scenario.
func within(e engine.Event, o *Outline) error {
	switch {
	case e.Job < engine.None || e.Job >= len(o.Jobs):
		return fmt.Errorf("the scene has no job %d", e.Job)
	case e.Running < engine.None || e.Running >= len(o.Running):
		return fmt.Errorf("nothing with the number %d ran at the beginning", e.Running)
	}
	for _, node := range e.Nodes {
		if node < 0 || node >= len(o.Nodes) {
			return fmt.Errorf("the scene has no node %d", node)
		}
	}
	return nil
}
