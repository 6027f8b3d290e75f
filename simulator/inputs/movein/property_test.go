package movein_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/controller/migrate"
	"github.com/lockstep-project/lockstep/simulator/inputs/movein"
)

// TestDocuments_LosesNothing compares every value of the input's documents with the result: it stands where it stood,
// or a note names its field or a part of the document around it.
func TestDocuments_LosesNothing(t *testing.T) {
	for _, dir := range folders(t) {
		documents, options := load(t, dir)
		result, err := movein.Documents(documents, options)
		if err != nil {
			continue // there is no result
		}
		for i, path := range missing(documents, result) {
			t.Errorf("%s: %d: %s is lost", dir, i, path)
		}
	}
}

// missing returns the fields of documents that are neither in the result nor in its notes.
func missing(documents []migrate.Document, result movein.Result) []string {
	var lost []string
	at := 0
	for _, document := range documents {
		for identity(result.Documents[at].Content) != identity(document.Content) {
			at++ // an object that was added beside another
		}
		after := map[string]bool{}
		walk(
			result.Documents[at].Content,
			"",
			func(path string, value any) { after[fmt.Sprint(path, "=", value)] = true },
		)
		walk(document.Content, "", func(path string, value any) {
			noted := slices.ContainsFunc(result.Notes, func(note migrate.Note) bool {
				rest, found := strings.CutPrefix(path, note.Field)
				return found && note.Line >= document.Line() && (rest == "" || strings.ContainsAny(rest[:1], ".["))
			})
			if !after[fmt.Sprint(path, "=", value)] && !noted {
				lost = append(lost, path)
			}
			claimed := slices.ContainsFunc(result.Notes, func(note migrate.Note) bool {
				return note.Field == path && note.Line >= document.Line() && strings.HasPrefix(note.Text, "unread: ")
			})
			if !after[fmt.Sprint(path, "=", value)] && claimed && len(documents) == 1 {
				lost = append(lost, path+", which a note calls unread,")
			}
		})
		at++
	}
	return lost
}

func identity(content map[string]any) string {
	metadata, _ := content["metadata"].(map[string]any)
	return fmt.Sprint(content["kind"], metadata["name"], metadata["generateName"])
}

// walk visits each value that is neither a mapping nor a list.
func walk(value any, path string, visit func(path string, value any)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			walk(value[key], strings.TrimPrefix(path+"."+key, "."), visit)
		}
	case []any:
		for i, inner := range value {
			walk(inner, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	default:
		visit(path, value)
	}
}

// TestDocuments_NamesEveryKey writes labels and annotations of other schedulers, known ones and random ones, anywhere
// into the scenes: each is in the result or in a note.
func TestDocuments_NamesEveryKey(t *testing.T) {
	var scenes []migrate.Document
	for _, dir := range folders(t) {
		if !strings.Contains(dir, "refuse") {
			documents, _ := load(t, dir)
			scenes = append(scenes, documents...)
		}
	}
	keys := []string{
		"volcano.sh/queue-name",
		"volcano.sh/network-topology-mode",
		"volcano.sh/network-topology-highest-tier",
		"scheduling.volcano.sh/group-min-member",
		"scheduling.volcano.sh/queue-name",
		"scheduling.k8s.io/group-name",
		"kai.scheduler/queue",
		"kai.scheduler/topology",
		"kai.scheduler/topology-required-placement",
		"kai.scheduler/segment-size",
		"kai.scheduler/topology-preferred-placement",
		"kai.scheduler/batch-min-member",
		"kai.scheduler/node-pool",
		"pod-group-name",
		"runai/x",
		"scheduling.x-k8s.io/pod-group",
		"yunikorn.apache.org/app-id",
		"yunikorn.apache.org/task-groups",
		"yunikorn.apache.org/queue",
		"ray.io/gang-scheduling-enabled",
		"ray.io/priority-class-name",
	}
	rapid.Check(t, func(t *rapid.T) {
		document := rapid.SampledFrom(scenes).Draw(t, "document")
		document.Content = runtime.DeepCopyJSON(document.Content)
		var places []map[string]any
		visitMetadata(document.Content, func(metadata map[string]any) { places = append(places, metadata) })
		for range rapid.IntRange(1, 4).Draw(t, "keys") {
			key := rapid.OneOf(rapid.SampledFrom(keys), rapid.Custom(func(t *rapid.T) string {
				prefix := rapid.SampledFrom([]string{"volcano.sh", "x.volcano.sh", "kai.scheduler", "run.ai"}).
					Draw(t, "prefix")
				return prefix + "/" + rapid.StringMatching("[a-z]{1,8}").Draw(t, "name")
			})).Draw(t, "key")
			sort := rapid.SampledFrom([]string{"labels", "annotations"}).Draw(t, "sort")
			if len(places) == 0 {
				return
			}
			metadata := rapid.SampledFrom(places).Draw(t, "place")
			if metadata[sort] == nil {
				metadata[sort] = map[string]any{}
			}
			metadata[sort].(map[string]any)[key] = rapid.SampledFrom([]string{"hard", "1", "soft", "x", ""}).
				Draw(t, "value")
		}
		result, err := movein.Documents([]migrate.Document{document}, movein.Options{})
		checkRefusal(t, err)
		if err == nil {
			for _, path := range missing([]migrate.Document{document}, result) {
				t.Errorf("%s is lost:\n%s", path, lines(result.Notes))
			}
		}
	})
}

func visitMetadata(value any, visit func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if metadata, is := value[key].(map[string]any); is && key == "metadata" {
				visit(metadata)
			}
			visitMetadata(value[key], visit)
		}
	case []any:
		for _, inner := range value {
			visitMetadata(inner, visit)
		}
	}
}

func checkRefusal(t *rapid.T, err error) {
	var bad *migrate.InputError
	if err != nil && (!errors.As(err, &bad) || bad.What == "" || bad.Mend == "" || bad.Line < 1 ||
		strings.Contains(bad.Error(), "\n")) {
		t.Fatalf("%T: %v", err, err)
	}
}

// TestDocuments_RefusesOrChanges puts values of other types anywhere into the scenes: the result loses nothing, or one
// line gives the fault, the place and the remedy.
func TestDocuments_RefusesOrChanges(t *testing.T) {
	var scenes []migrate.Document
	for _, dir := range folders(t) {
		documents, _ := load(t, dir)
		scenes = append(scenes, documents...)
	}
	rapid.Check(t, func(t *rapid.T) {
		document := rapid.SampledFrom(scenes).Draw(t, "document")
		document.Content = runtime.DeepCopyJSON(document.Content)
		disturb(t, document.Content)
		options := movein.Options{KeepMPIJobs: rapid.Bool().Draw(t, "keep"), Levels: map[string]string{"1": "rack"}}
		_, err := movein.Documents([]migrate.Document{document}, options)
		checkRefusal(t, err)
	})
}

// disturb replaces one value somewhere below root.
func disturb(t *rapid.T, root map[string]any) {
	odd := []any{
		nil,
		"odd",
		int64(-1),
		int64(3),
		1.5,
		true,
		[]any{},
		[]any{"odd"},
		map[string]any{},
		map[string]any{"name": int64(1)},
	}
	node := any(root)
	for {
		set, inner := pick(t, node)
		if set == nil {
			return
		}
		_, isMap := inner.(map[string]any)
		_, isList := inner.([]any)
		if !isMap && !isList || rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
			set(rapid.SampledFrom(odd).Draw(t, "odd"))
			return
		}
		node = inner
	}
}

// pick chooses a part of a node, and returns the function that sets it.
func pick(t *rapid.T, node any) (set func(any), inner any) {
	switch node := node.(type) {
	case map[string]any:
		if len(node) > 0 {
			key := rapid.SampledFrom(slices.Sorted(maps.Keys(node))).Draw(t, "key")
			return func(value any) { node[key] = value }, node[key]
		}
	case []any:
		if len(node) > 0 {
			i := rapid.IntRange(0, len(node)-1).Draw(t, "index")
			return func(value any) { node[i] = value }, node[i]
		}
	}
	return nil, nil
}
