package plan

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// checkOrders refuses keys that a strategic merge takes for orders, such as $patch: delete in a map of labels. A patch
// adds and replaces; it never removes settings of the runtime's administrator.
func checkOrders(patches []trainerv1alpha1.RuntimePatch) field.ErrorList {
	var faults field.ErrorList
	for i := range patches {
		at := field.NewPath("spec", "runtimePatches").Index(i)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&patches[i])
		if err != nil {
			faults = append(faults, field.InternalError(at, err))
			continue
		}
		faults = append(faults, orders(content, at)...)
	}
	return faults
}

func orders(value any, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if strings.HasPrefix(key, "$") {
				faults = append(faults, field.Invalid(at.Key(key), value[key], "keys of a patch must not begin with $"))
			}
			faults = append(faults, orders(value[key], at.Child(key))...)
		}
	case []any:
		for i := range value {
			faults = append(faults, orders(value[i], at.Index(i))...)
		}
	}
	return faults
}
