package admission_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/admission"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// TestDefault plays each case of testdata/default.yaml.
func TestDefault(t *testing.T) {
	for _, c := range defaultCases(t) {
		t.Run(strings.ReplaceAll(c.Name, " ", "_"), func(t *testing.T) {
			old, next := raw(t, c.Old), raw(t, c.Next)
			out, err := admission.Default(old, next, now())
			if err != nil {
				t.Fatal(err)
			}
			want := c.Want
			switch c.Same {
			case "next":
				want = c.Next
			case "old":
				want = c.Old
			}
			if diff := cmp.Diff(tree(t, raw(t, want)), tree(t, out)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			again, err := admission.Default(old, out, now())
			if err != nil || string(again) != string(out) {
				t.Errorf("a second time (%v):\n%s\nafter\n%s", err, again, out)
			}
			if diff := cmp.Diff(spec(tree(t, out)), spec(tree(t, answered(t, next, out)))); diff != "" {
				t.Errorf("the answer's patch makes something else (-want +got):\n%s", diff)
			}
		})
	}
}

// answered is an object after the patch that makes another of it, as the API server applies it.
func answered(t *testing.T, from, to []byte) []byte {
	t.Helper()
	patch, err := json.Marshal(ctrladmission.PatchResponseFromRaw(from, to).Patches)
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err = object.UnmarshalJSON(from); err != nil {
		t.Fatal(err)
	}
	cluster := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(&object).Build()
	if err = cluster.Patch(t.Context(), &object, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	out, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDefault_PreservesFieldsOnKueueUpdate sends each old object of the cases back as Kueue 0.19 would: whole, by types
// without the new fields, with only suspend changed. Immutable fields must be unchanged to the letter.
func TestDefault_PreservesFieldsOnKueueUpdate(t *testing.T) {
	for _, c := range defaultCases(t) {
		if c.Old == nil || strings.HasPrefix(c.Name, "fields that nobody here knows") {
			continue
		}
		t.Run(strings.ReplaceAll(c.Name, " ", "_"), func(t *testing.T) {
			old := raw(t, c.Old)
			if _, err := admission.Default(nil, old, now()); err != nil {
				t.Skip("an old object that is no TrainJob")
			}
			out, err := admission.Default(old, kueuesUpdate(t, old), now())
			if err != nil {
				t.Fatal(err)
			}
			was, is := spec(tree(t, old)), spec(tree(t, out))
			for key := range was {
				if key == "suspend" {
					continue
				}
				if diff := cmp.Diff(was[key], is[key]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
			if is["suspend"] != true {
				t.Errorf("suspend is %v, want what Kueue sent", is["suspend"])
			}
		})
	}
}

// kueuesUpdate returns an object as a client with Trainer 2.2's types that suspends it would write it.
func kueuesUpdate(tb testing.TB, object []byte) []byte {
	tb.Helper()
	var job trainerv1alpha1.TrainJob
	if err := json.Unmarshal(object, &job); err != nil {
		tb.Fatal(err)
	}
	if job.Spec.Trainer != nil {
		job.Spec.Trainer.ResourceClaimsPerNode = nil // 2.2 has no such field
	}
	for _, patch := range job.Spec.RuntimePatches {
		if patch.TrainingRuntimeSpec == nil || patch.TrainingRuntimeSpec.Template == nil ||
			patch.TrainingRuntimeSpec.Template.Spec == nil {
			continue
		}
		for _, replicated := range patch.TrainingRuntimeSpec.Template.Spec.ReplicatedJobs {
			template := replicated.Template
			if template != nil && template.Spec != nil && template.Spec.Template != nil &&
				template.Spec.Template.Spec != nil {
				template.Spec.Template.Spec.TerminationGracePeriodSeconds = nil
			}
		}
	}
	job.Spec.Suspend = new(true)
	out, err := json.Marshal(job)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func TestDefault_NamesTheMistypedField(t *testing.T) {
	for name, c := range map[string]struct{ next, want string }{
		"a word for a number": {`{"spec":{"trainer":{"numNodes":"two"}}}`, "spec.trainer.numNodes: "},
		"a wrong quantity": {
			`{"spec":{"trainer":{"resourcesPerNode":{"limits":{"cpu":"1","memory":"much"}}}}}`,
			"spec.trainer.resourcesPerNode.limits.memory: ",
		},
		"a wrong time":      {`{"spec":{"runtimePatches":[{"manager":"a/b"},{"time":"today"}]}}`, "spec.runtimePatches[1].time: "},
		"a list for a spec": {`{"spec":[]}`, "spec: "},
		"a list":            {`[]`, "array"},
		"null":              {`null`, "one JSON object"},
		"no JSON":           {`{`, "EOF"},
		"two objects":       {`{}{}`, "one JSON object"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			_, err := admission.Default(nil, []byte(c.next), now())
			if !errors.Is(err, admission.ErrMalformed) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want one that has %q", err, c.want)
			}
		})
	}
}

// FuzzDefault looks for panics, and for fields that change although no user may change them.
func FuzzDefault(f *testing.F) {
	for _, c := range defaultCases(f) {
		f.Add(raw(f, c.Old), raw(f, c.Next))
		f.Add(raw(f, c.Next), raw(f, c.Next))
	}
	f.Add(
		[]byte(`{"spec":{"runtimePatches":[null,{}]}}`),
		[]byte(`{"spec":{"runtimePatches":[null,{},{"manager":""}]}}`),
	)
	f.Fuzz(func(t *testing.T, old, next []byte) {
		out, err := admission.Default(old, next, now())
		if err != nil {
			return
		}
		again, err := admission.Default(old, out, now())
		if err != nil || string(again) != string(out) {
			t.Fatalf("a second time (%v):\n%s\nafter\n%s", err, again, out)
		}
		was, is := tree(t, next), tree(t, out)
		for _, object := range []map[string]any{was, is} {
			if s := spec(object); s != nil {
				for _, key := range []string{"runtimeRef", "trainer", "initializer", "runtimePatches"} {
					delete(s, key)
				}
			}
		}
		if !reflect.DeepEqual(was, is) {
			t.Fatalf("changed what is not its own: %s to %s", next, out)
		}
		if sent, err := admission.Default(old, kueuesUpdate(t, out), now()); err != nil {
			t.Fatalf("what came out cannot come back: %v\n%s", err, sent)
		}
	})
}

// A defaultCase is a request, and the object to store: Want, or the one that Same names.
type defaultCase struct {
	Name            string
	Old, Next, Want map[string]any
	Same            string
}

func defaultCases(tb testing.TB) []defaultCase {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "default.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	var cases []defaultCase
	if err = yaml.UnmarshalStrict(text, &cases); err != nil || len(cases) == 0 {
		tb.Fatalf("%d cases: %v", len(cases), err)
	}
	return cases
}

// raw is a case's spec as the JSON of a TrainJob, nil for none.
func raw(tb testing.TB, spec map[string]any) []byte {
	tb.Helper()
	if spec == nil {
		return nil
	}
	out, err := json.Marshal(map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1",
		"kind":       "TrainJob",
		"metadata": map[string]any{
			"name":   "train",
			"labels": map[string]any{"a": "b"},
			"future": json.Number("9007199254740993"),
		},
		"spec": spec,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func tree(tb testing.TB, raw []byte) map[string]any {
	tb.Helper()
	var out map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		tb.Fatalf("%s: %v", raw, err)
	}
	return out
}

func spec(tree map[string]any) map[string]any {
	out, _ := tree["spec"].(map[string]any)
	return out
}
