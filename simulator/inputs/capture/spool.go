package capture

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
)

// spool stores the captured objects on disk until all are there, because the manifest precedes and counts them, and
// because they are ordered. Memory holds only the offset of each. The file has no name, so it cannot be left behind.
type spool struct {
	file    *os.File
	out     *bufio.Writer
	size    int64
	entries []entry
	// marks reads the marks of pods: PodGroups are in the spool before pods.
	marks *marks
}

// entry is one object in the spool.
type entry struct {
	kind            int // an index of kinds()
	namespace, name string
	offset          int64
	length          int
}

// newSpool makes an empty spool in a directory; "" is the one for temporary files.
func newSpool(dir string) (*spool, error) {
	file, err := os.CreateTemp(dir, ".lockstep-snapshot-*")
	if err != nil {
		return nil, fmt.Errorf("making a temporary file for the snapshot: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("unlinking the snapshot's temporary file: %w", err), file.Close())
	}
	return &spool{file: file, out: bufio.NewWriterSize(file, 1<<20), marks: newMarks()}, nil
}

func (s *spool) close() error {
	if err := s.file.Close(); err != nil {
		return fmt.Errorf("closing the snapshot's temporary file: %w", err)
	}
	return nil
}

// add appends an object as text.
func (s *spool) add(kind int, o object, text []byte) error {
	if _, err := s.out.Write(text); err != nil {
		return fmt.Errorf("writing the snapshot's temporary file: %w", err)
	}
	s.entries = append(s.entries, entry{kind, o.GetNamespace(), o.GetName(), s.size, len(text)})
	s.size += int64(len(text))
	return nil
}

// cut forgets everything after the first n objects.
func (s *spool) cut(n int) { s.entries = s.entries[:n] }

// sort puts the objects into the order of the file.
func (s *spool) sort() {
	slices.SortFunc(s.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}

// each calls do with the text of every object, in order. The text is valid during the call only.
func (s *spool) each(do func(e entry, text []byte) error) error {
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("writing the snapshot's temporary file: %w", err)
	}
	var buffer []byte
	for _, e := range s.entries {
		buffer = slices.Grow(buffer[:0], e.length)[:e.length]
		if n, err := s.file.ReadAt(buffer, e.offset); n < e.length {
			return fmt.Errorf("reading the snapshot's temporary file: %w", err)
		}
		if err := do(e, buffer); err != nil {
			return err
		}
	}
	return nil
}
