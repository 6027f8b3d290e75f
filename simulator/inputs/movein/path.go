package movein

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// path leads to a part of a document: keys (string) and indexes (int).
type path []any

func at(steps ...any) path { return steps }

func (p path) child(steps ...any) path { return slices.Concat(p, steps) }

// owner is the path of the object whose metadata stands at p.
func (p path) owner() path { return p[:len(p)-1] }

// within reports whether p is at or below another path.
func (p path) within(other path) bool {
	return len(p) >= len(other) && slices.Equal(p[:len(other)], other)
}

// String writes the path as users know it: spec.tasks[0].template.
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

// parts are the places of a document that other schedulers read.
type parts struct {
	// metadata are the paths of all metadata with labels or annotations, the innermost first.
	metadata []path
	// templates are the paths of objects with the spec of a pod; the path of a Pod is empty.
	templates []path
	// schedulers are the paths of all fields spec.schedulerName.
	schedulers []path
}

// survey finds the parts of an object, in the order of their keys.
func survey(object map[string]any) parts {
	var found parts
	walk(object, nil, func(where path, fields map[string]any) {
		if metadata, is := fields["metadata"].(map[string]any); is {
			if metadata["labels"] != nil || metadata["annotations"] != nil {
				found.metadata = append(found.metadata, where.child("metadata"))
			}
		}
		spec, is := fields["spec"].(map[string]any)
		if !is {
			return
		}
		if _, isPod := spec["containers"].([]any); isPod {
			found.templates = append(found.templates, where)
		}
		if _, names := spec["schedulerName"].(string); names {
			found.schedulers = append(found.schedulers, where.child("spec", "schedulerName"))
		}
	})
	slices.SortStableFunc(found.metadata, func(a, b path) int { return len(b) - len(a) })
	return found
}

// walk visits each mapping of a document except those of its status, the outermost first.
func walk(value any, where path, visit func(where path, fields map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(where, value)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if len(where) > 0 || key != "status" {
				walk(value[key], where.child(key), visit)
			}
		}
	case []any:
		for i := range value {
			walk(value[i], where.child(i), visit)
		}
	}
}
