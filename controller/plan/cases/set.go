package cases

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

const extension = ".txtar"

// Set is the cases of a folder.
type Set struct {
	folder string
	cases  map[string]*Case
}

// Load reads all cases of a folder and applies their differences. Errors name file, part and place.
func Load(folder string) (*Set, error) {
	s, err := Open(folder)
	if err != nil {
		return nil, err
	}
	return s, errors.Join(s.Misfits()...)
}

// Open is Load for commands that write upstream's answers or ours: differences of these may not fit their bases any
// more. Save leaves such a part unchanged unless it was set.
func Open(folder string) (*Set, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"+extension))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no cases: there is no file %s", filepath.Join(folder, "*"+extension))
	}
	s := &Set{folder: folder, cases: map[string]*Case{}}
	for _, file := range files {
		if err := s.read(strings.TrimSuffix(filepath.Base(file), extension)); err != nil {
			return nil, err
		}
	}
	for _, c := range s.All() {
		for _, name := range c.Parts("") {
			if err := s.expand(c, name); err != nil {
				return nil, fmt.Errorf("%s: part %s: %w", s.file(c.Name), name, err)
			}
			if p := c.parts[name]; p.misfit != nil && isInput(name) {
				return nil, p.misfit
			}
		}
	}
	return s, nil
}

// Misfits returns an error for each part whose difference does not fit its base.
func (s *Set) Misfits() []error {
	var all []error
	for _, c := range s.All() {
		all = append(all, c.misfits()...)
	}
	return all
}

func (c *Case) misfits() []error {
	var all []error
	for _, name := range c.Parts("") {
		if err := c.parts[name].misfit; err != nil {
			all = append(all, err)
		}
	}
	return all
}

// Read reads one case.
func Read(folder, name string) (*Case, error) {
	s := &Set{folder: folder, cases: map[string]*Case{}}
	if err := s.read(name); err != nil {
		return nil, err
	}
	c := s.cases[name]
	for _, part := range c.Parts("") {
		if err := s.expand(c, part); err != nil {
			return nil, fmt.Errorf("%s: part %s: %w", s.file(name), part, err)
		}
	}
	return c, errors.Join(c.misfits()...)
}

// read reads the file of a case and those of its bases, and applies nothing.
func (s *Set) read(name string) error {
	if s.cases[name] != nil {
		return nil
	}
	text, err := os.ReadFile(s.file(name))
	if err != nil {
		return fmt.Errorf("reading a case: %w", err)
	}
	c, err := parse(name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", s.file(name), err)
	}
	s.cases[name] = c
	for part, p := range c.parts {
		if p.base == "" || p.base == Upstream && part != Upstream {
			continue
		}
		if err := s.read(p.base); err != nil {
			return fmt.Errorf("%s: part %s: base %q: %w", s.file(name), part, p.base, err)
		}
	}
	return nil
}

// All returns the cases by name.
func (s *Set) All() []*Case {
	all := make([]*Case, 0, len(s.cases))
	for _, name := range slices.Sorted(maps.Keys(s.cases)) {
		all = append(all, s.cases[name])
	}
	return all
}

// Get returns a case, or nil.
func (s *Set) Get(name string) *Case { return s.cases[name] }

// Save writes the cases whose files change. A part's base does not change; a whole part becomes a difference from a
// base of other parts if that is much shorter. Files that do not parse to the same parts are refused before any is
// written.
func (s *Set) Save() error {
	s.fold()
	texts := map[string][]byte{}
	for _, c := range s.All() {
		text := s.print(c)
		again, err := parse(c.Name, text)
		if err != nil {
			return fmt.Errorf("%s: it could not be read again: %w", s.file(c.Name), err)
		}
		if !again.reads(c) {
			return fmt.Errorf(
				"%s: a part does not end with a line, or has one that looks like the header of another part",
				s.file(c.Name),
			)
		}
		texts[s.file(c.Name)] = text
	}
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, texts[file]) {
			continue
		}
		if err := os.WriteFile(file, texts[file], 0o644); err != nil {
			return fmt.Errorf("writing a case: %w", err)
		}
	}
	return nil
}

func (s *Set) file(name string) string { return filepath.Join(s.folder, name+extension) }

func parse(name string, text []byte) (*Case, error) {
	archive := txtar.Parse(text)
	c := &Case{Name: name, Shows: strings.TrimSpace(string(archive.Comment)), parts: map[string]part{}}
	if c.Shows == "" {
		return nil, errors.New("no comment: the first line says what the case shows")
	}
	for _, file := range archive.Files {
		header, base, based := strings.Cut(file.Name, " from ")
		if err := check(header); err != nil {
			return nil, err
		}
		if _, twice := c.parts[header]; twice {
			return nil, fmt.Errorf("part %s is there twice", header)
		}
		p := part{base: base}
		if based {
			p.difference = string(file.Data)
		} else {
			p.text = string(file.Data)
		}
		c.parts[header] = p
	}
	return c, nil
}

// print prints a case with the differences that fold made.
func (s *Set) print(c *Case) []byte {
	archive := txtar.Archive{Comment: []byte(c.Shows + "\n")}
	for _, name := range c.Parts("") {
		p := c.parts[name]
		file := txtar.File{Name: name, Data: []byte(p.text)}
		if p.base != "" {
			file = txtar.File{Name: name + " from " + p.base, Data: []byte(p.difference)}
		}
		archive.Files = append(archive.Files, file)
	}
	return txtar.Format(&archive)
}

// reads reports whether a case that was parsed from its file has the parts of the case that was printed.
func (c *Case) reads(other *Case) bool {
	same := func(a, b part) bool {
		return a.base == b.base && (a.base != "" && a.difference == b.difference || a.base == "" && a.text == b.text)
	}
	return maps.EqualFunc(c.parts, other.parts, same)
}

// expand applies the difference of a part, after that of its base.
func (s *Set) expand(c *Case, name string) error {
	p := c.parts[name]
	if p.isExpanded() {
		return nil
	}
	holder, of := s.baseOf(c, name)
	if holder == nil {
		return fmt.Errorf("base %q: it has no such part", p.base)
	}
	if holder != c && !holder.isRoot(of) {
		return fmt.Errorf("base %q is a difference itself: take %s", p.base, holder.parts[of].base)
	}
	if err := s.expand(holder, of); err != nil {
		return fmt.Errorf("base %q: %w", p.base, err)
	}
	c.parts[name] = p.applied(holder.parts[of], s.file(c.Name)+": part "+name, mend(name))
	return nil
}

func (p part) isExpanded() bool { return p.base == "" || p.text != "" || p.misfit != nil }

// applied returns the part with its text, or with its misfit: the place, the error and the remedy.
func (p part) applied(base part, where, mend string) part {
	err := errors.New("its own difference does not fit")
	if base.misfit == nil {
		p.text, err = apply(base.text, p.difference)
	}
	if err != nil {
		p.misfit = fmt.Errorf("%s: it does not fit %s: %w; %s", where, p.base, err, mend)
	}
	return p
}

// baseOf returns the case and the name of the part that is the base of a part, or nil.
func (s *Set) baseOf(c *Case, name string) (*Case, string) {
	base := c.parts[name].base
	holder, of := s.cases[base], name
	if base == Upstream && name != Upstream {
		holder, of = c, base
	}
	if holder == nil || holder == c && of == name {
		return nil, ""
	}
	if _, ok := holder.parts[of]; !ok {
		return nil, ""
	}
	return holder, of
}

// isRoot reports whether a part may be the base of other cases: it is whole, or a difference from its own case's
// upstream.yaml. So a reader follows at most one other case for each part, and no part is its own base.
func (c *Case) isRoot(name string) bool {
	base := c.parts[name].base
	return base == "" || base == Upstream
}
