package admission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/admission"
)

// TestCRD_RulesPassKueueUpdate sends the cases of testdata/default.yaml back as Kueue would, to the API server's own
// evaluation of the CRD's rules: after Default they pass, and without it those with odd spelling do not. The cases' own
// updates pass too, except for the one that changes an immutable field.
func TestCRD_RulesPassKueueUpdate(t *testing.T) {
	schema := trainJobSchema(t)
	rules := cel.NewValidator(schema, true, celconfig.PerCallLimit)
	refused := 0
	for _, c := range defaultCases(t) {
		if _, err := admission.Default(nil, raw(t, c.Old), now()); c.Old == nil || err != nil {
			continue
		}
		t.Run(strings.ReplaceAll(c.Name, " ", "_"), func(t *testing.T) {
			old := served(t, schema, raw(t, c.Old))
			sent := served(t, schema, kueuesUpdate(t, printed(t, old)))
			violated := func(next any) string {
				faults, _ := rules.Validate(t.Context(), nil, schema, next, old, celconfig.RuntimeCELCostBudget)
				if len(faults) == 0 {
					return ""
				}
				return faults.ToAggregate().Error()
			}
			if strings.Contains(violated(sent), "field is immutable") {
				refused++
			}
			differs := strings.HasPrefix(c.Name, "a real difference") ||
				strings.HasPrefix(c.Name, "nothing is put back")
			for who, next := range map[string]any{"Kueue": sent, "the client": served(t, schema, raw(t, c.Next))} {
				out, err := admission.Default(printed(t, old), printed(t, next), now())
				if err != nil {
					t.Fatal(err)
				}
				why := violated(served(t, schema, out))
				if (why != "") != (differs && who != "Kueue") {
					t.Errorf("%s was refused: %q", who, why)
				}
			}
		})
	}
	if refused == 0 {
		t.Error("no case needs Default, so that the rules may not have been asked")
	}
}

// served is an object as the API server has it before admission: without unknown fields, with defaults.
func served(t *testing.T, schema *structuralschema.Structural, text []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	pruning.Prune(object, schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, schema)
	defaulting.Default(object, schema)
	return object
}

func trainJobSchema(t *testing.T) *structuralschema.Structural {
	t.Helper()
	text, err := os.ReadFile(
		filepath.Join("..", "..", "manifests", "chart", "crds", "trainer.kubeflow.org_trainjobs.yaml"),
	)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err = yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	var props apiextensions.JSONSchemaProps
	err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := structuralschema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
