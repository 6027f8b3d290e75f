package faults

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// Parse reads a scene as String writes it. Empty lines, and those that begin with #, say nothing.
func Parse(text string) (Scene, error) {
	var s Scene
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := s.parseLine(words); err != nil {
			return Scene{}, &badinput.Error{
				Where: fmt.Sprintf("line %d", i+1), What: err.Error(), Mend: "write it as Scene.String does",
			}
		}
	}
	if s.Racks < 1 || s.PerRack < 1 || s.GPUs < 1 {
		return Scene{}, &badinput.Error{What: "no machines", Mend: "begin with a line seed=… racks=… nodes=… gpus=…"}
	}
	return s, nil
}

func (s *Scene) parseLine(words []string) error {
	read := &reader{given: make(map[string]string)}
	for _, w := range words {
		if key, value, ok := strings.Cut(w, "="); ok {
			read.given[key] = value
		}
	}
	switch words[0] {
	case "job":
		if len(words) < 2 {
			return errNameless
		}
		j := Job{
			Name: words[1], At: read.duration("at"), Nodes: read.number("nodes"), GPUs: read.number("gpus"),
			Runs: read.duration("runs"), Priority: read.number("priority"),
		}
		for _, w := range words {
			j.Rack, j.Replace, j.Native = j.Rack || w == "rack", j.Replace || w == "replace", j.Native || w == "native"
			j.GivesUp = j.GivesUp || w == "gives-up"
		}
		s.Jobs = append(s.Jobs, j)
	default:
		if strings.Contains(words[0], "=") {
			s.Seed, s.Racks = uint64(read.number("seed")), read.number("racks") //nolint:gosec // a seed is any number
			s.PerRack, s.GPUs = read.number("nodes"), read.number("gpus")
			s.Claims, s.Channels = slices.Contains(words, "claims"), slices.Contains(words, "channels")
			break
		}
		f := Fault{
			Kind:    Kind(words[0]),
			At:      read.duration("at"),
			For:     read.duration("for"),
			Bound:   read.number("bound"),
			Process: read.given["process"],
			Job:     read.given["job"],
			Rank:    read.number("rank"),
			Node:    read.number("node"), GPUs: read.number("gpus"), Ranks: read.number("ranks"),
			Code: int32(read.number("code")), //nolint:gosec // exit codes are small
		}
		if of := read.given["of"]; of != "" {
			f.Job = of
		}
		s.Faults = append(s.Faults, f)
	}
	return read.err
}

var errNameless = errors.New("a job without a name")

// reader reads words of the form key=value, and records the first error.
type reader struct {
	given map[string]string
	err   error
}

func (r *reader) number(key string) int {
	text, ok := r.given[key]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s is no number: %s", key, text) //nolint:err113 // Parse says where
	}
	return n
}

func (r *reader) duration(key string) time.Duration {
	text, ok := r.given[key]
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s is no duration: %s", key, text) //nolint:err113 // Parse says where
	}
	return d
}
