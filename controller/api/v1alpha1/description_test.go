package v1alpha1_test

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// TestCRD_OurFieldsAreDescribed wants a sentence for each field that our own types declare: kubectl explain shows it.
// Kubernetes and JobSet describe the fields that they declare.
func TestCRD_OurFieldsAreDescribed(t *testing.T) {
	for kind, object := range map[string]any{
		"trainjobs":               trainerv1alpha1.TrainJob{},
		"trainingruntimes":        trainerv1alpha1.TrainingRuntime{},
		"clustertrainingruntimes": trainerv1alpha1.ClusterTrainingRuntime{},
	} {
		t.Run(kind, func(t *testing.T) {
			fields := 0
			describe(t, "", reflect.TypeOf(object), *openAPI(t, kind), &fields)
			if fields < 10 {
				t.Errorf("looked at %d fields only", fields)
			}
		})
	}
}

// describe checks the fields of a struct of ours, and of the structs of ours in it.
func describe(t *testing.T, path string, declared reflect.Type, schema apiextensions.JSONSchemaProps, fields *int) {
	t.Helper()
	for field := range declared.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner, isOurs := ourStruct(field.Type)
		if name == "" && strings.Contains(options, "inline") {
			if isOurs {
				describe(t, path, inner, schema, fields)
			}
			continue
		}
		property, exists := schema.Properties[name]
		if !exists {
			t.Errorf("%s.%s is not in the schema", path, name)
			continue
		}
		if path+"."+name != ".metadata" { // the API server describes every object's own
			*fields++
			if !isSentence(property.Description) {
				t.Errorf("%s.%s is described by %q, want a sentence", path, name, property.Description)
			}
		}
		if property.Items != nil && property.Items.Schema != nil {
			property = *property.Items.Schema
		}
		if isOurs {
			describe(t, path+"."+name, inner, property, fields)
		}
	}
}

// ourStruct is the struct below pointers and lists, and whether it is one of ours.
func ourStruct(declared reflect.Type) (reflect.Type, bool) {
	for declared.Kind() == reflect.Pointer || declared.Kind() == reflect.Slice {
		declared = declared.Elem()
	}
	return declared, declared.Kind() == reflect.Struct &&
		declared.PkgPath() == reflect.TypeFor[trainerv1alpha1.TrainJob]().PkgPath()
}

// isSentence wants some words and a full stop.
func isSentence(text string) bool {
	return len(strings.Fields(text)) >= 4 && strings.HasSuffix(strings.TrimSpace(text), ".")
}
