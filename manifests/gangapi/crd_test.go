package gangapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// shipped is the schema of the CRD.
func shipped(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	content, err := os.ReadFile("../chart/crds/scheduling.lockstep.dev_podgroups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// The native Go type travels as the custom resource, so that has to have all of its fields, and can use no others.
func TestCRD_HasTheFieldsOfTheNativeType(t *testing.T) {
	schema := shipped(t)
	for name, of := range map[string]reflect.Type{
		"spec":   reflect.TypeFor[schedulingv1beta1.PodGroupSpec](),
		"status": reflect.TypeFor[schedulingv1beta1.PodGroupStatus](),
	} {
		sameFields(t, name, schema.Properties[name], of)
	}
}

// sameFields compares the properties of a schema with the JSON fields of a type, as far as the type is of Kubernetes'
// scheduling group.
func sameFields(t *testing.T, at string, schema apiextensionsv1.JSONSchemaProps, of reflect.Type) {
	t.Helper()
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
		if schema.Items != nil {
			schema = *schema.Items.Schema
		}
	}
	if of.Kind() != reflect.Struct || !strings.Contains(of.PkgPath(), "scheduling") {
		return
	}
	fields := map[string]reflect.Type{}
	for member := range of.Fields() {
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		fields[name] = member.Type
	}
	want, got := slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(schema.Properties))
	if !slices.Equal(got, want) {
		t.Errorf("%s: the CRD has %v, the Go type %v", at, got, want)
	}
	for name, property := range schema.Properties {
		if of, ok := fields[name]; ok {
			sameFields(t, at+"."+name, property, of)
		}
	}
}

// The rules of the CRD repeat the API server's validation of its own PodGroups: of a group only minCount changes, and a
// priority is added once.
func TestCRD_Rules(t *testing.T) {
	const gang = `{"schedulingPolicy":{"gang":{"minCount":4}}}`
	for name, c := range map[string]struct{ old, next, says string }{
		"a gang":                  {next: gang},
		"a basic group":           {next: `{"schedulingPolicy":{"basic":{}}}`},
		"no policy":               {next: `{"schedulingPolicy":{}}`, says: "one of gang, basic"},
		"both policies":           {next: `{"schedulingPolicy":{"gang":{"minCount":4},"basic":{}}}`, says: "one of gang, basic"},
		"shared claims":           {next: gang[:len(gang)-1] + `,"resourceClaims":[{"name":"x","resourceClaimName":"y"}]}`, says: "resourceClaims need"},
		"a parent":                {next: gang[:len(gang)-1] + `,"parentCompositePodGroupName":"x"}`, says: "not supported"},
		"another minCount":        {old: gang, next: strings.Replace(gang, "4", "5", 1)},
		"from gang to basic":      {old: gang, next: `{"schedulingPolicy":{"basic":{}}}`, says: "immutable"},
		"a priority that is new":  {old: gang, next: gang[:len(gang)-1] + `,"priority":7}`},
		"a priority that changes": {old: gang[:len(gang)-1] + `,"priority":7}`, next: gang[:len(gang)-1] + `,"priority":8}`, says: "immutable"},
		"constraints that are new": {
			old: gang, next: gang[:len(gang)-1] + `,"schedulingConstraints":{"topology":[{"key":"rack"}]}}`, says: "immutable",
		},
		"a class that is new": {old: gang, next: gang[:len(gang)-1] + `,"priorityClassName":"urgent"}`, says: "immutable"},
	} {
		t.Run(name, func(t *testing.T) {
			faults := judge(t, c.old, c.next)
			if (len(faults) > 0) != (c.says != "") || !strings.Contains(fmt.Sprint(faults), c.says) {
				t.Errorf("it says %v, want %q", faults, c.says)
			}
		})
	}
}

// judge applies the CRD's rules to a spec, or to its change.
func judge(t *testing.T, old, next string) field.ErrorList {
	t.Helper()
	var schema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		shipped(t),
		&schema,
		nil,
	); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(&schema)
	if err != nil {
		t.Fatal(err)
	}
	object := func(spec string) map[string]any {
		if spec == "" {
			return nil
		}
		var tree map[string]any
		if err := json.Unmarshal([]byte(`{"metadata":{"name":"gang"},"spec":`+spec+`}`), &tree); err != nil {
			t.Fatal(err)
		}
		return integers(tree).(map[string]any)
	}
	var before any
	if tree := object(old); tree != nil {
		before = tree
	}
	validator := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	faults, _ := validator.Validate(t.Context(), nil, structural, object(next), before, celconfig.RuntimeCELCostBudget)
	return faults
}

// integers makes the whole numbers of a tree integers, as the API server decodes them.
func integers(tree any) any {
	switch value := tree.(type) {
	case map[string]any:
		for key := range value {
			value[key] = integers(value[key])
		}
	case []any:
		for i := range value {
			value[i] = integers(value[i])
		}
	case float64:
		return int64(value)
	}
	return tree
}
