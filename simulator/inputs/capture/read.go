package capture

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

const takeAgain = "take it again with lockstep snapshot"

// Read reads a snapshot, compressed or not; name is its name in errors. An incomplete snapshot is refused as bad input
// with the line (of the text, where it is compressed): torn lines, another format, a kind that a scheduler needs and
// the file does not mention, and numbers of objects that differ from the manifest. Kinds that this version does not
// know are skipped with a warning.
func Read(in io.Reader, name string) (Snapshot, error) {
	lines, err := open(in, name)
	if err != nil {
		return Snapshot{}, err
	}
	r := reader{name: name, counts: map[string]int{}, seen: map[string]int{}, known: map[string]kind{}}
	for _, k := range kinds() {
		r.known[k.resource.Resource] = k
	}
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return Snapshot{}, r.unread(number, err)
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			if err := r.line(number, text); err != nil {
				return Snapshot{}, err
			}
		}
		if err != nil {
			break
		}
	}
	return r.finish()
}

// open finds out whether a file is compressed; its name does not count.
func open(in io.Reader, name string) (*bufio.Reader, error) {
	lines := bufio.NewReaderSize(in, 1<<16)
	magic, err := lines.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, (&reader{name: name}).unread(0, err)
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return lines, nil
	}
	unpacked, err := gzip.NewReader(lines)
	if err != nil {
		return nil, (&reader{name: name}).unread(0, err)
	}
	return bufio.NewReaderSize(unpacked, 1<<16), nil
}

// reader is the state after some lines.
type reader struct {
	name     string
	snapshot Snapshot
	known    map[string]kind
	counts   map[string]int // by resource
	seen     map[string]int // the line of each object
}

// unread makes an error of reading bad input where the content is to blame.
func (r *reader) unread(number int, err error) error {
	_, isCorrupt := errors.AsType[flate.CorruptInputError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badinput.At(r.name, number, "the file is cut off here", takeAgain)
	case isCorrupt, errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return badinput.At(r.name, number, "the compressed file is damaged: "+err.Error(), takeAgain)
	case badinput.Is(err): // of a live cluster
		return err
	}
	return fmt.Errorf("reading %s: %w", r.name, err)
}

func (r *reader) line(number int, text []byte) error {
	if r.snapshot.Manifest.Format == "" {
		return r.manifest(number, text)
	}
	var found line[json.RawMessage]
	if err := json.Unmarshal(text, &found); err != nil {
		return badinput.At(r.name, number, "the line is not whole: "+err.Error(), takeAgain)
	}
	if found.Resource == "" || len(found.Object) == 0 {
		return badinput.At(r.name, number, "the line has no resource, or no object", takeAgain)
	}
	r.counts[found.Resource]++
	k, ok := r.known[found.Resource]
	if !ok {
		return nil
	}
	o := k.blank()
	if err := json.Unmarshal(found.Object, o); err != nil {
		return badinput.At(r.name, number, fmt.Sprintf("this is no %s: %s", k.name, err), takeAgain)
	}
	if o.GetName() == "" {
		return badinput.At(r.name, number, "the "+k.name+" has no name", takeAgain)
	}
	id := found.Resource + " " + o.GetNamespace() + "/" + o.GetName()
	if earlier, twice := r.seen[id]; twice {
		return badinput.At(r.name, number,
			fmt.Sprintf("%s %s is there already, in line %d", k.name, o.GetName(), earlier), "leave one of them")
	}
	r.seen[id] = number
	k.add(&r.snapshot, o)
	return nil
}

// manifest reads the first line.
func (r *reader) manifest(number int, text []byte) error {
	var found Manifest
	if err := json.Unmarshal(text, &found); err != nil {
		return badinput.At(r.name, number, "this is no manifest of a snapshot: "+err.Error(),
			"use a file of lockstep snapshot")
	}
	if found.Format != Format {
		return badinput.At(
			r.name,
			number,
			fmt.Sprintf("the format is %q, and only %s can be read", found.Format, Format),
			"take it with this version of lockstep",
		)
	}
	for _, named := range found.Kinds {
		k, ok := r.known[named.Resource]
		if ok && (k.resource.Group != named.Group || k.resource.Version != named.Version) {
			return badinput.At(r.name, number, fmt.Sprintf("%s are of %s/%s, and only %s can be read",
				named.Resource, named.Group, named.Version, k.resource.GroupVersion()),
				"take it with this version of lockstep")
		}
	}
	for _, k := range kinds() {
		if k.needed &&
			!slices.ContainsFunc(found.Kinds, func(n Kind) bool { return n.Resource == k.resource.Resource }) {
			return badinput.At(r.name, number,
				"the manifest says nothing of "+k.String()+", which a scheduler needs to know", takeAgain)
		}
	}
	r.snapshot.Manifest = found
	return nil
}

// finish compares the objects with the manifest.
func (r *reader) finish() (Snapshot, error) {
	if r.snapshot.Manifest.Format == "" {
		return Snapshot{}, badinput.At(r.name, 0, "the file is empty", takeAgain)
	}
	for _, named := range r.snapshot.Manifest.Kinds {
		count := r.counts[named.Resource]
		delete(r.counts, named.Resource)
		if count != named.Count {
			cause := "it was cut off"
			if count > named.Count {
				cause = "it was changed"
			}
			return Snapshot{}, badinput.At(r.name, 1, fmt.Sprintf("the manifest says %d %s, the file has %d: %s",
				named.Count, named.Resource, count, cause), "take it again")
		}
		if _, ok := r.known[named.Resource]; !ok {
			r.snapshot.Warnings = append(r.snapshot.Warnings, fmt.Sprintf(
				"%s: %s (%d) are not read by this version of lockstep", r.name, named.Resource, named.Count))
		}
	}
	for _, stray := range slices.Sorted(maps.Keys(r.counts)) {
		what := fmt.Sprintf("the manifest says nothing of %s, the file has %d", stray, r.counts[stray])
		if _, ok := r.known[stray]; ok {
			return Snapshot{}, badinput.At(r.name, 1, what+": it was changed", "take it again")
		}
		r.snapshot.Warnings = append(r.snapshot.Warnings, r.name+": "+what+", which are not read")
	}
	return r.snapshot, nil
}
