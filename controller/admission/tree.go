package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	typed "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// parse reads a TrainJob of any version as a tree that preserves the spelling of numbers.
func parse(raw []byte) (map[string]any, error) {
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := decoder.Token(); err != io.EOF || tree == nil {
		return nil, fmt.Errorf("%w: the object must be one JSON object", ErrMalformed)
	}
	if err := decodes(tree); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, culprit(tree, nil, func(part any) any { return part }))
	}
	return tree, nil
}

// decodes returns the error of decoding a tree into a TrainJob.
func decodes(tree any) error { return decode(tree, &trainerv1alpha1.TrainJob{}) }

// decode reads a tree as the API server's clients do: names of fields are case-sensitive.
func decode(tree, into any) error {
	raw, err := json.Marshal(tree)
	if err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	if err = typed.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("parsing JSON: %w", err)
	}
	return nil
}

// culprit finds the innermost value that is to blame for whole(value) not being a TrainJob, since not all parsers name
// it.
func culprit(value any, at *field.Path, whole func(any) any) error {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			inner := func(part any) any { return whole(map[string]any{key: part}) }
			if decodes(inner(value[key])) != nil {
				return culprit(value[key], at.Child(key), inner)
			}
		}
	case []any:
		for i := range value {
			inner := func(part any) any { return whole([]any{part}) }
			if decodes(inner(value[i])) != nil {
				return culprit(value[i], at.Index(i), inner)
			}
		}
	}
	return fmt.Errorf("%s: %w", at, decodes(whole(value)))
}

// object is the object at a place, nil if there is none.
func object(tree map[string]any, place ...string) map[string]any {
	found := tree
	for _, key := range place {
		found, _ = found[key].(map[string]any)
	}
	return found
}

// named returns the first entry of a list whose key has that value, nil if there is none.
func named(list []any, key string, value any) map[string]any {
	name, ok := value.(string)
	if !ok {
		return nil
	}
	for _, item := range list {
		if entry, isObject := item.(map[string]any); isObject && entry[key] == name {
			return entry
		}
	}
	return nil
}

// without is a tree without the values at a place, the tree itself if there are none. In the place, names are separated
// by dots, and [] after a name stands for each item of a list.
func without(tree any, place string) any {
	switch tree := tree.(type) {
	case map[string]any:
		head, rest, deeper := strings.Cut(place, ".")
		inner, ok := tree[strings.TrimSuffix(head, "[]")]
		if !ok {
			return tree
		}
		out := maps.Clone(tree)
		if deeper {
			out[strings.TrimSuffix(head, "[]")] = without(inner, rest)
		} else {
			delete(out, head)
		}
		return out
	case []any:
		out := make([]any, len(tree))
		for i := range tree {
			out[i] = without(tree[i], place)
		}
		return out
	}
	return tree
}
