package results_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// memory is a disk in memory that is full after a number of bytes, counted over all files.
type memory struct {
	files map[string][]byte
	room  int
}

func newMemory(room int) *memory { return &memory{map[string][]byte{}, room} }

func (m *memory) List(dir string) ([]string, error) {
	var names []string
	for name := range m.files {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}

func (m *memory) Make(string) error { return nil }

func (m *memory) Create(name string) (io.WriteCloser, error) {
	m.room += len(m.files[name])
	m.files[name] = nil
	return &memoryFile{m, name}, nil
}

func (m *memory) Open(name string) (io.ReadCloser, error) {
	text, ok := m.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

func (m *memory) Rename(from, to string) error {
	m.room += len(m.files[to])
	m.files[to] = m.files[from]
	delete(m.files, from)
	return nil
}

func (m *memory) Remove(name string) error {
	m.room += len(m.files[name])
	delete(m.files, name)
	return nil
}

// left are the files that are still under a name for the time being.
func (m *memory) left() []string {
	var names []string
	for name := range m.files {
		if strings.HasSuffix(name, ".unfinished") {
			names = append(names, name)
		}
	}
	return names
}

type memoryFile struct {
	disk *memory
	name string
}

func (f *memoryFile) Write(p []byte) (int, error) {
	n := min(len(p), f.disk.room)
	f.disk.files[f.name] = append(f.disk.files[f.name], p[:n]...)
	f.disk.room -= n
	if n < len(p) {
		return n, errors.Join(errors.New("write"), syscall.ENOSPC)
	}
	return n, nil
}

func (f *memoryFile) Close() error { return nil }
