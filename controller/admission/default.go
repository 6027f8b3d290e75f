package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// ErrMalformed indicates that an object is not a TrainJob; the text names the field.
var ErrMalformed = errors.New("not a TrainJob")

// Default returns the object to store when a client that read old writes next: JSON of TrainJobs, old empty on
// creation. It works on the JSON itself, so unknown fields are preserved.
//
// It stamps runtimePatches, folds Kueue's into one, restores fields that an older client dropped without knowing them,
// and preserves the spelling of unchanged values: the CRD's immutability rules compare spelling, not meaning. It is
// idempotent. The error is an ErrMalformed about next; a malformed old object is ignored, so that it can be mended.
func Default(old, next []byte, now time.Time) ([]byte, error) {
	tree, err := parse(next)
	if err != nil {
		return nil, err
	}
	var before map[string]any
	if len(old) > 0 {
		if before, err = parse(old); err != nil {
			before = nil
		}
	}
	if spec, ok := tree["spec"].(map[string]any); ok {
		had := object(before, "spec")
		for _, part := range specParts() {
			part.restore(had, spec)
		}
		hadPatches, _ := had["runtimePatches"].([]any)
		patches, isList := spec["runtimePatches"].([]any)
		if patches = retained(hadPatches, patches, before, tree); isList || len(patches) > 0 {
			spec["runtimePatches"] = defaultPatches(hadPatches, patches, now)
		}
	}
	out, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("printing the TrainJob: %w", err)
	}
	return out, nil
}

// defaultPatches stamps an entry that is new or changed; one with an unchanged meaning is restored as it was, time
// included.
func defaultPatches(had, wanted []any, now time.Time) []any {
	wanted = folded(wanted)
	stamp := metav1.NewTime(now).UTC().Format(time.RFC3339)
	for i, entry := range wanted {
		next, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		old := named(had, "manager", next["manager"])
		whole, fields := entryParts()
		switch {
		case old == nil && next["time"] == nil:
			next["time"] = stamp
		case old == nil:
		case whole.regains(old, next):
			wanted[i] = old
		default:
			for _, pair := range podSpecs(old, next) {
				for _, part := range fields {
					part.restore(pair[0], pair[1])
				}
			}
			next["time"] = stamp
		}
	}
	return wanted
}

// folded makes one of Kueue's entries, since its webhook appends one also where there is one: in the place of the
// first, with the content of the last. Kueue just appended that; it means that nothing is assigned yet.
func folded(patches []any) []any {
	var out []any
	first := -1
	for _, patch := range patches {
		if entry, ok := patch.(map[string]any); ok && entry["manager"] == plan.KueueManager {
			if first >= 0 {
				out[first] = entry
				continue
			}
			first = len(out)
		}
		out = append(out, patch)
	}
	if out == nil { // an empty list stays one
		return patches
	}
	return out
}
