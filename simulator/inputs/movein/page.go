package movein

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/controller/migrate"
)

// verdict is the first word of a note.
type verdict string

const (
	stays   verdict = "stays"
	changed verdict = "changed"
	removed verdict = "removed"
	unread  verdict = "unread"
	todo    verdict = "to do"
)

// page is one document being changed. Lists retain their order and length, so paths lead to the same part before and
// after.
type page struct {
	run  *run
	from migrate.Document
	// object is the document as it will be written.
	object map[string]any
	parts  parts
	// added are objects that the document needs beside it.
	added []map[string]any
	// pods holds the fields that the controller of the document's kind writes on pods.
	pods  podsOf
	notes []migrate.Note
	// keep leaves the object, which package migrate would turn into a TrainJob, to its present controller.
	keep bool
	// err is the first reason to refuse the document.
	err error
}

func newPage(r *run, from migrate.Document) *page {
	object := runtime.DeepCopyJSON(from.Content)
	return &page{run: r, from: from, object: object, parts: survey(object)}
}

// note gives the verdict about the part at a path.
func (p *page) note(v verdict, where path, format string, args ...any) {
	p.notes = append(p.notes, migrate.Note{
		File: p.from.File, Line: p.from.Line(where...), Field: where.String(),
		Text: string(v) + ": " + fmt.Sprintf(format, args...),
	})
}

// refuse ends the run, because of the part at a path.
func (p *page) refuse(where path, what, mend string) {
	if p.err == nil {
		p.err = &migrate.InputError{File: p.from.File, Line: p.from.Line(where...), What: what, Mend: mend}
	}
}

func (p *page) mistyped(where path, want string, value any) {
	mend := "write " + want
	if want == aString {
		mend = "put it in quotes (YAML reads 1, true, no and on as other types)"
	}
	p.refuse(where, fmt.Sprintf("%s is %s, and must be %s", where, form(value), want), mend)
}

// The names of types of values in a document.
const (
	aMapping = "a mapping"
	aList    = "a list"
	aString  = "a string"
	aFlag    = "true or false"
	aNumber  = "a whole number, at least 0"
)

// form returns the name of a value's wrong type.
func form(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return aMapping
	case []any:
		return aList
	case string:
		return fmt.Sprintf("the string %q", value)
	}
	return fmt.Sprint(value)
}

// value returns the document's value at a path; nil if there is none.
func (p *page) value(where path) any {
	var node any = p.object
	for i, step := range where {
		if node == nil {
			return nil
		}
		switch step := step.(type) {
		case string:
			fields, is := node.(map[string]any)
			if !is {
				p.mistyped(where[:i], aMapping, node)
				return nil
			}
			node = fields[step]
		case int:
			items, is := node.([]any)
			if !is || step >= len(items) {
				return nil
			}
			node = items[step]
		}
	}
	return node
}

// read returns the value at a path, and refuses one of another type; the zero value if there is none.
func read[T any](p *page, where path, want string) T {
	value := p.value(where)
	typed, is := value.(T)
	if value != nil && !is {
		p.mistyped(where, want, value)
	}
	return typed
}

func (p *page) fields(where path) map[string]any { return read[map[string]any](p, where, aMapping) }

func (p *page) items(where path) []any { return read[[]any](p, where, aList) }

func (p *page) text(where path) string { return read[string](p, where, aString) }

func (p *page) flag(where path) bool { return read[bool](p, where, aFlag) }

// number returns the number at a path, or missing.
func (p *page) number(where path, missing int) int {
	value := p.value(where)
	if value == nil {
		return missing
	}
	if number, is := value.(int64); is && number >= 0 && number <= math.MaxInt32 {
		return int(number)
	}
	if number, is := value.(float64); is && number == math.Trunc(number) && number >= 0 && number <= math.MaxInt32 {
		return int(number)
	}
	p.mistyped(where, aNumber, value)
	return missing
}

// has reports whether the document says anything at a path.
func (p *page) has(where path) bool { return p.value(where) != nil }

// set writes the value at a path whose last steps are keys.
func (p *page) set(where path, value any) {
	last := len(where) - 1
	for i := range where[:last] {
		if key, isKey := where[i].(string); isKey && !p.has(where[:i+1]) {
			if parent := p.fields(where[:i]); parent != nil {
				parent[key] = map[string]any{}
			}
		}
	}
	if parent, key := p.fields(where[:last]), where[last]; parent != nil {
		parent[fmt.Sprint(key)] = value
	}
}

// remove deletes the field at a path, and the labels or annotations that are empty without it.
func (p *page) remove(where path) {
	last := len(where) - 1
	parent := p.fields(where[:last])
	delete(parent, fmt.Sprint(where[last]))
	if name := where[:last]; len(parent) == 0 && len(name) > 0 &&
		(name[last-1] == labels || name[last-1] == annotations) {
		p.remove(name)
	}
}

// name is the object's name, or the prefix of its generated name.
func (p *page) name() string {
	if name := p.text(at(metadata, "name")); name != "" {
		return name
	}
	return strings.TrimSuffix(p.text(at(metadata, "generateName")), "-")
}

// metadataAreTexts refuses labels and annotations that are no strings.
func (p *page) metadataAreTexts() {
	for _, of := range p.parts.metadata {
		for _, sort := range []string{labels, annotations} {
			for key := range p.fields(of.child(sort)) {
				p.text(of.child(sort, key))
			}
		}
	}
}
