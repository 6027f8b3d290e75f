package measure_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// field finds a number in a scorecard's JSON.
func field(tb testing.TB, text, name string) float64 {
	tb.Helper()
	var at any
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		tb.Fatal(err)
	}
	for part := range strings.SplitSeq(name, ".") {
		object, ok := at.(map[string]any)
		if !ok || object[part] == nil {
			tb.Fatalf("the scorecard has no %s", name)
		}
		at = object[part]
	}
	number, ok := at.(float64)
	if !ok {
		tb.Fatalf("%s is no number", name)
	}
	return number
}

// TestDefinitions_ReadTheirOwnFields gives each number of a scorecard another value: a definition has to read its own.
func TestDefinitions_ReadTheirOwnFields(t *testing.T) {
	var card measure.Scorecard
	empty, err := json.Marshal(card)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(empty, &object); err != nil {
		t.Fatal(err)
	}
	number := 0
	var fill func(map[string]any)
	fill = func(o map[string]any) {
		for key, value := range o {
			switch v := value.(type) {
			case float64:
				number++
				o[key] = number
			case map[string]any:
				fill(v)
			}
		}
	}
	fill(object)
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &card); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, d := range measure.Definitions() {
		if want := field(t, string(text), d.Name); d.Of(card) != want {
			t.Errorf("%s is read as %v instead of %v", d.Name, d.Of(card), want)
		}
		if seen[d.Name] || d.Title == "" || d.Formula == "" {
			t.Errorf("%s is there twice, or says nothing of itself", d.Name)
		}
		seen[d.Name] = true
	}
	if _, ok := measure.DefinitionOf("wait_seconds.p99"); !ok {
		t.Error("a definition is not found by its name")
	}
	if _, ok := measure.DefinitionOf("wait_seconds.p98"); ok {
		t.Error("a definition is found that is not there")
	}
}
