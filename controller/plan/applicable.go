package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Applicable returns an object in the form of a server-side apply: without status, which is not ours, and without
// nulls, which would claim fields that we do not set.
func Applicable(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting %s: %w", object.GetObjectKind().GroupVersionKind().Kind, err)
	}
	delete(content, "status")
	dropNulls(content)
	return &unstructured.Unstructured{Object: content}, nil
}

func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if inner == nil {
				delete(value, key)
				continue
			}
			dropNulls(inner)
		}
	case []any:
		for _, inner := range value {
			dropNulls(inner)
		}
	}
}
