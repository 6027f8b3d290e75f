package main

import (
	"maps"
	"reflect"
	"strings"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	gangv1beta1 "github.com/lockstep-project/lockstep/manifests/gangapi/v1beta1"
)

// kinds returns our kinds by name.
func kinds() map[string]reflect.Type {
	return map[string]reflect.Type{
		"TrainJob":               reflect.TypeFor[trainerv1alpha1.TrainJob](),
		"TrainingRuntime":        reflect.TypeFor[trainerv1alpha1.TrainingRuntime](),
		"ClusterTrainingRuntime": reflect.TypeFor[trainerv1alpha1.ClusterTrainingRuntime](),
		"PodGroup":               reflect.TypeFor[gangv1beta1.PodGroup](),
		"FrozenTrainJob":         reflect.TypeFor[statev1alpha1.FrozenTrainJob](),
	}
}

// makeLean removes the descriptions of fields that others declare (Kubernetes, JobSet) from the schema of a type. They
// are nine tenths of a CRD, whose whole text kubectl stores in an annotation of at most 262,144 bytes, and Helm twice
// in a Secret of at most 1 MiB.
func makeLean(schema any, of reflect.Type) {
	node, ok := schema.(map[string]any)
	if !ok {
		return
	}
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
		for _, inner := range []string{"items", "additionalProperties"} {
			if _, there := node[inner].(map[string]any); there {
				makeLean(node[inner], of)
			}
		}
	}
	properties, _ := node["properties"].(map[string]any)
	if of.Kind() != reflect.Struct || !isOurs(of) {
		for _, property := range properties {
			strip(property)
		}
		return
	}
	fields := fieldsOf(of)
	for name, property := range properties {
		if field, declared := fields[name]; declared {
			makeLean(property, field)
		}
	}
}

// isOurs reports whether a type is declared in this project.
func isOurs(of reflect.Type) bool {
	return strings.HasPrefix(of.PkgPath(), "github.com/lockstep-project/lockstep/")
}

// fieldsOf returns the types of a struct's fields by their names in JSON, those of embedded structs included.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for field := range of.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name != "":
			fields[name] = field.Type
		case strings.Contains(options, "inline"):
			maps.Copy(fields, fieldsOf(field.Type))
		}
	}
	return fields
}

// strip removes all descriptions from a schema. A property may be called description, too.
func strip(schema any) {
	node, ok := schema.(map[string]any)
	if !ok {
		return
	}
	delete(node, "description")
	properties, _ := node["properties"].(map[string]any)
	for _, property := range properties {
		strip(property)
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		strip(node[inner])
	}
}
