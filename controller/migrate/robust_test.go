package migrate_test

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/controller/migrate"
)

// TestMigrate_AnyInputIsMigratedOrRefused puts values of other types anywhere into the cases: there is no panic, and
// every error names its place and the remedy.
func TestMigrate_AnyInputIsMigratedOrRefused(t *testing.T) {
	var documents []migrate.Document
	for _, dir := range cases(t) {
		documents = append(documents, readDocuments(t, filepath.Join(dir, "in.yaml"))...)
	}
	rapid.Check(t, func(t *rapid.T) {
		document := rapid.SampledFrom(documents).Draw(t, "document")
		content := runtime.DeepCopyJSON(document.Content)
		disturb(t, content)
		document.Content = content
		_, err := migrate.Documents([]migrate.Document{document})
		var bad *migrate.InputError
		if err != nil && (!errors.As(err, &bad) || bad.What == "" || bad.Mend == "" || bad.Line < 1) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}

// disturb replaces one value somewhere below root.
func disturb(t *rapid.T, root map[string]any) {
	odd := []any{nil, "odd", int64(-1), true, []any{}, []any{"odd"}, map[string]any{}, map[string]any{"name": "odd"}}
	node := any(root)
	for {
		switch here := node.(type) {
		case map[string]any:
			if len(here) == 0 {
				return
			}
			key := rapid.SampledFrom(slices.Sorted(maps.Keys(here))).Draw(t, "key")
			if leaf(here[key]) || rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
				here[key] = rapid.SampledFrom(odd).Draw(t, "odd")
				return
			}
			node = here[key]
		case []any:
			if len(here) == 0 {
				return
			}
			i := rapid.IntRange(0, len(here)-1).Draw(t, "index")
			if leaf(here[i]) || rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
				here[i] = rapid.SampledFrom(odd).Draw(t, "odd")
				return
			}
			node = here[i]
		default:
			return
		}
	}
}

func leaf(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
