package admission

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// same reports whether two JSON values mean the same as a T: nothing is an empty list, "8" is 8. Fields that T does not
// know must be the same to the letter, because their meaning is unknown here.
func same[T any](a, b any) bool {
	var left, right T
	if decode(a, &left) != nil || decode(b, &right) != nil {
		return false
	}
	kind := reflect.TypeFor[T]()
	return equality.Semantic.DeepEqual(left, right) && reflect.DeepEqual(beyond(a, kind), beyond(b, kind))
}

// beyond returns the part of a JSON value that a type does not know, nil for none.
func beyond(value any, kind reflect.Type) any {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if reflect.PointerTo(kind).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	unknown := map[string]any{}
	note := func(key string, inner any) {
		if inner != nil {
			unknown[key] = inner
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			switch known := member(kind, key); {
			case known != nil:
				note(key, beyond(inner, known))
			default:
				note(key, inner)
			}
		}
	case []any:
		if kind.Kind() != reflect.Slice {
			return nil
		}
		for i, inner := range value {
			note(strconv.Itoa(i), beyond(inner, kind.Elem()))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return unknown
}

// member is the type of a map's values, or of the field that a struct has under a name in JSON; nil if there is none.
func member(kind reflect.Type, name string) reflect.Type {
	switch kind.Kind() {
	case reflect.Map:
		return kind.Elem()
	case reflect.Struct:
		for known := range kind.Fields() {
			tag, _, _ := strings.Cut(known.Tag.Get("json"), ",")
			switch {
			case tag == name && name != "":
				return known.Type
			case tag == "" && known.Anonymous: // written inline
				if found := member(known.Type, name); found != nil {
					return found
				}
			}
		}
		return nil
	default:
		return nil
	}
}
