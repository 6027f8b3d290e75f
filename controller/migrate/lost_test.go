package migrate_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/controller/migrate"
)

// moved returns the fields that have another name in the output.
func moved() map[string]string {
	return map[string]string{
		"replicas": "numNodes", "slotsPerWorker": "numProcPerNode", "nprocPerNode": "numProcPerNode",
		"targetJobs": "replicatedJobs",
	}
}

// TestMigrate_LosesNothing checks every value of every case: the output must have it under a field of its name, or a
// note must name its field or a field around it.
func TestMigrate_LosesNothing(t *testing.T) {
	for _, dir := range cases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			documents := readDocuments(t, filepath.Join(dir, "in.yaml"))
			result, err := migrate.Documents(documents)
			if err != nil {
				return // there is no output
			}
			out := map[string]bool{}
			for _, object := range result.Objects {
				walk(object, "", "", func(_, key string, value any) { out[fmt.Sprint(key, "=", value)] = true })
			}
			for _, document := range documents {
				notes := notesOf(result.Notes, document)
				walk(document.Content, "", "", func(path, key string, value any) {
					if key == "apiVersion" || key == "kind" || value == nil {
						return
					}
					if now := moved()[key]; now != "" {
						key = now
					}
					noted := slices.ContainsFunc(notes, func(field string) bool {
						rest, found := strings.CutPrefix(path, field)
						return found && (rest == "" || strings.ContainsAny(rest[:1], ".["))
					})
					came := out[fmt.Sprint(key, "=", value)] || key == "numNodes" || key == "numProcPerNode"
					if !came && !noted {
						t.Errorf("%s (%v) is lost", path, value)
					}
				})
			}
		})
	}
}

// notesOf returns the fields that notes name. A note belongs to the document if its line is not before the document's
// first.
func notesOf(notes []migrate.Note, document migrate.Document) []string {
	var fields []string
	for _, note := range notes {
		if note.Line >= document.Line() {
			fields = append(fields, note.Field)
		}
	}
	return fields
}

// walk visits each value that is no object and no list, with its path and the last key on it.
func walk(value any, path, key string, visit func(path, key string, value any)) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			walk(inner, strings.TrimPrefix(path+"."+name, "."), name, visit)
		}
	case []any:
		for i, inner := range value {
			walk(inner, fmt.Sprintf("%s[%d]", path, i), key, visit)
		}
	default:
		visit(path, key, value)
	}
}
