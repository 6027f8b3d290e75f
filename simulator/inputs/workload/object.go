package workload

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

// read checks the fields that every object needs, and those by which objects of our group are recognized.
func read(document yamlfile.Document) (Object, error) {
	object := Object{
		File:   document.File,
		Line:   document.Line,
		Object: &unstructured.Unstructured{Object: document.Content},
		from:   document,
	}
	for _, field := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
		if err := checkText(document, field); err != nil {
			return Object{}, err
		}
	}
	version, err := schema.ParseGroupVersion(object.Object.GetAPIVersion())
	if err != nil {
		return Object{}, document.At("apiVersion is not valid: "+err.Error(), "write group/version", "apiVersion")
	}
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(document.Content, "metadata", field) // written by its API server
	}
	switch version.Group {
	case Group:
		if err := checkOurs(document, object, version); err != nil {
			return object, err
		}
		return object, checkFields(document, object.Object.GetKind())
	case "kubeflow.org":
		what := object.Object.GetKind() + " " + object.Object.GetName() + " is an object of the old training operator"
		return Object{}, document.At(what, "make a TrainJob of it with: lockstep migrate "+document.File, "apiVersion")
	}
	return object, nil
}

// checkText refuses an object whose field is missing or not text.
func checkText(document yamlfile.Document, field []string) error {
	value, found, err := unstructured.NestedString(document.Content, field...)
	path := strings.Join(field, ".")
	switch {
	case err != nil:
		return document.At(path+" is not text", "quote it", anys(field)...)
	case !found || value == "":
		return document.At("the object has no "+path, "add it", anys(field[:len(field)-1])...)
	}
	return nil
}

func anys(field []string) []any {
	path := make([]any, len(field))
	for i, key := range field {
		path[i] = key
	}
	return path
}

// checkOurs refuses kinds and versions of our group that do not exist, durations that cannot be, and completes the
// namespace.
func checkOurs(document yamlfile.Document, object Object, version schema.GroupVersion) error {
	versions := []string{"v1alpha1", "v2alpha1"}
	if !slices.Contains(versions, version.Version) {
		what := fmt.Sprintf("%s has no version %s", Group, version.Version)
		return document.At(what, "use "+strings.Join(versions, " or "), "apiVersion")
	}
	switch kind := object.Object.GetKind(); kind {
	case KindClusterTrainingRuntime:
		return nil
	case KindTrainingRuntime, KindTrainJob:
	default:
		kinds := []string{KindTrainJob, KindTrainingRuntime, KindClusterTrainingRuntime}
		what := fmt.Sprintf("%s has no kind %s", Group, kind)
		return document.At(what, "use "+strings.Join(kinds, ", "), "kind")
	}
	if _, set, err := unstructured.NestedString(document.Content, "metadata", "namespace"); err != nil {
		return document.At("metadata.namespace is not text", "quote it", "metadata", "namespace")
	} else if !set || object.Object.GetNamespace() == "" {
		object.Object.SetNamespace(defaultNamespace)
	}
	if !object.isOurs(KindTrainJob) {
		return nil
	}
	if _, err := object.RunTime(); err != nil {
		return err
	}
	_, err := object.SubmitAfter()
	return err
}
