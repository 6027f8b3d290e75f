package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	sigsjson "sigs.k8s.io/json"
)

var (
	// quotedPath matches the strict decoder's name of a field: unknown field "spec.groups[0].nam".
	quotedPath = regexp.MustCompile(`unknown field "([^"]+)"`)
	pathStep   = regexp.MustCompile(`[^.\[\]]+`)
)

// decode returns the paths of fields that the type does not have.
func (p *page) decode(content map[string]any, prefix path, into any) ([]path, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, p.bad(prefix, "the object cannot be read: "+err.Error(), "write plain YAML or JSON")
	}
	strict, err := sigsjson.UnmarshalStrict(text, into, sigsjson.DisallowUnknownFields)
	if wrong, isWrong := errors.AsType[*json.UnmarshalTypeError](err); isWrong {
		return nil, p.mistyped(content, prefix, wrong)
	}
	if err != nil {
		return nil, p.bad(prefix, "the object cannot be read: "+strings.TrimPrefix(err.Error(), "json: "),
			"write a value that can be read")
	}
	var unknown []path
	for _, fault := range strict {
		if found := quotedPath.FindStringSubmatch(fault.Error()); found != nil {
			unknown = append(unknown, steps(found[1]))
		}
	}
	return unknown, nil
}

// mistyped names the field with a value of the wrong type, in the words of YAML.
func (p *page) mistyped(content map[string]any, prefix path, wrong *json.UnmarshalTypeError) error {
	inside := locate(content, steps(wrong.Field), wrong.Value)
	if inside == nil {
		inside = steps(wrong.Field)
	}
	where := prefix.child(inside...)
	mend := "write a value of type " + wrong.Type.String()
	if wrong.Type.Kind() == reflect.String {
		mend = "put it in quotes (YAML takes n, no, off, y, yes and on for false and true)"
	}
	return p.bad(where, fmt.Sprintf("%s is of the wrong type: %s", where, wrong.Value), mend)
}

// locate finds the value at the path of a wrong type. The decoder omits keys of maps and indexes of lists from that
// path.
func locate(value any, rest path, kind string) path {
	if len(rest) == 0 {
		if strings.HasPrefix(kind, kindOf(value)) {
			return path{}
		}
		return below(value, rest, kind)
	}
	if fields, isMap := value.(map[string]any); isMap {
		if key, isKey := rest[0].(string); isKey && fields[key] != nil {
			if found := locate(fields[key], rest[1:], kind); found != nil {
				return at(key).child(found...)
			}
		}
	}
	if found := below(value, rest, kind); found != nil {
		return found
	}
	return nil
}

// below looks one level further down.
func below(value any, rest path, kind string) path {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if found := locate(value[key], rest, kind); found != nil {
				return at(key).child(found...)
			}
		}
	case []any:
		for i := range value {
			if found := locate(value[i], rest, kind); found != nil {
				return at(i).child(found...)
			}
		}
	}
	return nil
}

// kindOf returns the decoder's name of a value's kind.
func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "bool"
	case nil:
		return "null"
	}
	return "number"
}

func steps(dotted string) path {
	var where path
	for _, step := range pathStep.FindAllString(dotted, -1) {
		if index, err := strconv.Atoi(step); err == nil {
			where = append(where, index)
			continue
		}
		where = append(where, step)
	}
	return where
}
