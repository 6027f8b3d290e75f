package migrate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// page is one document being migrated.
type page struct {
	from  Document
	notes []Note
}

// path leads to a part of a document: keys (string) and indexes (int).
type path []any

func at(steps ...any) path { return steps }

func (p path) child(steps ...any) path { return slices.Concat(p, steps) }

// String writes the path as users know it: spec.containers[0].name.
func (p path) String() string {
	var out strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&out, "[%d]", step)
		case string:
			if out.Len() > 0 {
				out.WriteByte('.')
			}
			out.WriteString(step)
		}
	}
	return out.String()
}

// note adds a note on the field at a path.
func (p *page) note(where path, text string) {
	p.notes = append(p.notes, Note{File: p.from.File, Line: p.from.Line(where...), Field: where.String(), Text: text})
}

// bad is the error that the part at a path cannot be used.
func (p *page) bad(where path, what, mend string) *InputError {
	return &InputError{File: p.from.File, Line: p.from.Line(where...), What: what, Mend: mend}
}

// value returns the value at a path of the document; nil if there is none.
func (p *page) value(where path) any { return valueAt(p.from.Content, where) }

func valueAt(root any, where path) any {
	for _, step := range where {
		switch step := step.(type) {
		case string:
			fields, _ := root.(map[string]any)
			root = fields[step]
		case int:
			items, _ := root.([]any)
			if step >= len(items) {
				return nil
			}
			root = items[step]
		}
	}
	return root
}

// take removes the value at a path of keys and returns it; nil if there is none.
func take(root map[string]any, where path) any {
	parent, _ := valueAt(root, where[:len(where)-1]).(map[string]any)
	key, isKey := where[len(where)-1].(string)
	if !isKey {
		return nil
	}
	value := parent[key]
	delete(parent, key)
	return value
}

// copyWithoutServer returns a copy of the document without the fields that the API server and kubectl write into an
// object.
func (p *page) copyWithoutServer() map[string]any {
	content := runtime.DeepCopyJSON(p.from.Content)
	for _, where := range []path{
		at("metadata", "uid"), at("metadata", "resourceVersion"), at("metadata", "generation"),
		at("metadata", "creationTimestamp"), at("metadata", "managedFields"), at("metadata", "selfLink"),
		at("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"), at("status"),
	} {
		if value := take(content, where); !empty(value) {
			p.note(where, "left out: the API server or kubectl writes it")
		}
	}
	if annotations, ok := valueAt(content, at("metadata", "annotations")).(map[string]any); ok &&
		len(annotations) == 0 {
		take(content, at("metadata", "annotations"))
	}
	return content
}

func empty(value any) bool {
	fields, isMap := value.(map[string]any)
	return value == nil || isMap && len(fields) == 0
}

// fill decodes content, which stands at prefix in the document, into a typed value. A field that the type does not have
// is noted and removed from content.
func (p *page) fill(content map[string]any, prefix path, into any) error {
	unknown, err := p.decode(content, prefix, into)
	if err != nil {
		return err
	}
	for len(unknown) > 0 { // the decoder stops counting at 100
		removed := 0
		for _, where := range slices.Backward(unknown) { // later items of a list first: indexes stay true
			if valueAt(content, where[:len(where)-1]) == nil {
				continue
			}
			if value := take(content, where); value != nil {
				p.note(prefix.child(where...), "left out: there is no such field now")
			}
			removed++
		}
		if removed == 0 {
			break
		}
		if unknown, err = p.decode(content, prefix, into); err != nil {
			return err
		}
	}
	return nil
}

// untyped converts an object to its manifest: without status, and without fields that only Go's types would write.
func untyped(object any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("printing the migrated object: %w", err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("reading the migrated object: %w", err)
	}
	delete(content, "status")
	tidy(content)
	return content, nil
}

// tidy removes nulls, and structs that types write although nothing is in them.
func tidy(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			tidy(inner)
			always := key == "metadata" || key == "resources" || key == "status"
			if inner == nil || always && empty(inner) {
				delete(value, key)
			}
		}
	case []any:
		for _, inner := range value {
			tidy(inner)
		}
	}
}
