package apiserver

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hasStatus reports whether the status of a kind is a subresource.
func hasStatus(kind string) bool {
	switch kind {
	case "Pod", "Node", "Job", "JobSet", "PodGroup", "TrainJob", "ResourceClaim":
		return true
	default:
		return false
	}
}

// field is a field of a typed object; invalid for one that has none, and for an untyped object.
func field(o client.Object, name string) reflect.Value {
	v := reflect.ValueOf(o).Elem()
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

// set sets a field of a typed object, to its zero value for an invalid one. Fields that an object does not have are not
// set.
func set(o client.Object, name string, to reflect.Value) {
	f := field(o, name)
	switch {
	case !f.IsValid():
	case !to.IsValid():
		f.SetZero()
	default:
		f.Set(to)
	}
}

func same(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	return equality.Semantic.DeepEqual(a.Interface(), b.Interface())
}
