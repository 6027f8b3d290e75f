package trainjob

import (
	"maps"
	"reflect"
	"slices"
)

// desired returns the wishes of users and controllers for an object: its labels, its annotations and its spec.
func desired(object map[string]any) map[string]any {
	wanted := map[string]any{"spec": object["spec"]}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		wanted["metadata"] = map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
	}
	return wanted
}

// differences returns the paths at which two values of JSON differ, in order. Entries of lists are compared by their
// name, where they have one.
func differences(before, next map[string]any) []string {
	found := comparison{keys: func(before, next map[string]any) []string {
		all := maps.Clone(before)
		maps.Copy(all, next)
		return slices.Sorted(maps.Keys(all))
	}}
	found.compare("", before, next)
	return found.paths
}

// requested returns the differences without the fields that next does not name: they may have been defaulted in before.
// Entries of lists count.
func requested(before, next map[string]any) []string {
	found := comparison{keys: func(_, next map[string]any) []string { return slices.Sorted(maps.Keys(next)) }}
	found.compare("", before, next)
	return found.paths
}

// comparison collects the paths at which two values differ.
type comparison struct {
	// keys returns the keys of two maps that count, in order.
	keys  func(before, next map[string]any) []string
	paths []string
}

func (c *comparison) compare(path string, before, next any) {
	a, isMap := before.(map[string]any)
	b, areMaps := next.(map[string]any)
	if isMap && areMaps {
		for _, key := range c.keys(a, b) {
			c.compare(join(path, key), a[key], b[key])
		}
		return
	}
	list, isList := before.([]any)
	nextList, areLists := next.([]any)
	if isList && areLists {
		c.compareLists(path, list, nextList)
		return
	}
	if !same(before, next) {
		c.differs(path)
	}
}

func (c *comparison) differs(path string) { c.paths = append(c.paths, path) }

func (c *comparison) compareLists(path string, before, next []any) {
	a, named := byName(before)
	b, bothNamed := byName(next)
	if !named || !bothNamed {
		if len(before) != len(next) {
			c.differs(path)
			return
		}
		for i := range before {
			c.compare(path, before[i], next[i])
		}
		return
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		entry := path + "[" + name + "]"
		if a[name] == nil || b[name] == nil {
			c.differs(entry)
			continue
		}
		c.compare(entry, a[name], b[name])
	}
}

// byName are the entries of a list by their names; ok is false if an entry has none.
func byName(list []any) (entries map[string]any, ok bool) {
	entries = map[string]any{}
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		name, isText := fields["name"].(string)
		if !isText {
			return nil, false
		}
		entries[name] = entry
	}
	return entries, true
}

// same reports whether two values mean the same: nothing, an empty map and an empty list do.
func same(a, b any) bool {
	return empty(a) && empty(b) || reflect.DeepEqual(a, b)
}

func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
