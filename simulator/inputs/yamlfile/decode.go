package yamlfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	sigsjson "sigs.k8s.io/json"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// Decode fills a typed object and refuses fields that it does not have.
func (d Document) Decode(into any) error {
	strict, err := d.decode(into)
	if err != nil {
		return err
	}
	if len(strict) > 0 {
		what := strict[0].Error()
		return d.At(what, "remove it or mend its name", pathIn(what)...)
	}
	return nil
}

// DecodeLenient fills a typed object and passes over fields that it does not have.
func (d Document) DecodeLenient(into any) error {
	_, err := d.decode(into)
	return err
}

func (d Document) decode(into any) ([]error, error) {
	asJSON, err := json.Marshal(d.Content)
	if err != nil {
		return nil, badinput.At(d.File, d.Line, "the document cannot be read: "+err.Error(), "write plain YAML or JSON")
	}
	strict, err := sigsjson.UnmarshalStrict(asJSON, into, sigsjson.DisallowUnknownFields)
	if err != nil {
		return nil, d.mistyped(err)
	}
	return strict, nil
}

// mistyped names the field that holds a value of the wrong type, in the words of YAML.
func (d Document) mistyped(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return d.At(strings.TrimPrefix(err.Error(), "json: "), "write a value that can be read")
	}
	path := strings.TrimPrefix(wrong.Field, ".")
	what := fmt.Sprintf("%s is of the wrong type: %s", path, wrong.Value)
	mend := "write a value of type " + wrong.Type.String()
	if wrong.Type.Kind() == reflect.String {
		mend = "put it in quotes (YAML takes n, no, off, y, yes and on for false and true)"
	}
	return d.At(what, mend, steps(path)...)
}

var (
	// quotedPath matches the strict decoder's name of a field: unknown field "spec.groups[0].nam".
	quotedPath = regexp.MustCompile(`field "([^"]+)"`)
	pathStep   = regexp.MustCompile(`[^.\[\]]+`)
)

// pathIn reads the path that the strict decoder's sentence names.
func pathIn(sentence string) []any {
	if found := quotedPath.FindStringSubmatch(sentence); found != nil {
		return steps(found[1])
	}
	return nil
}

func steps(dotted string) []any {
	var path []any
	for _, step := range pathStep.FindAllString(dotted, -1) {
		if index, err := strconv.Atoi(step); err == nil {
			path = append(path, index)
			continue
		}
		path = append(path, step)
	}
	return path
}
