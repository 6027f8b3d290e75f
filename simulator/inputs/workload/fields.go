package workload

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

// checkFields refuses fields that the kind lacks and values of the wrong type, as the API server would, but before
// there is one.
func checkFields(document yamlfile.Document, kind string) error {
	var typed runtime.Object
	switch kind {
	case KindTrainJob:
		typed = &trainerv1alpha1.TrainJob{}
	case KindTrainingRuntime:
		typed = &trainerv1alpha1.TrainingRuntime{}
	case KindClusterTrainingRuntime:
		typed = &trainerv1alpha1.ClusterTrainingRuntime{}
	default:
		return nil
	}
	text, err := json.Marshal(document.Content)
	if err != nil {
		return document.At(kind+" is no JSON: "+err.Error(), "correct it")
	}
	strict, err := kjson.UnmarshalStrict(text, typed)
	if err != nil {
		if found := wrongType().FindStringSubmatch(err.Error()); found != nil {
			return document.At(
				kind+" has a "+found[1]+" as "+found[2],
				"write a value of type "+found[3],
				pathOf(found[2])...)
		}
		return document.At(kind+" cannot be read: "+err.Error(), "correct the value")
	}
	if len(strict) == 0 {
		return nil
	}
	if found := unknownField().FindStringSubmatch(strict[0].Error()); found != nil {
		path := pathOf(found[1])
		return document.At(kind+" has no field "+found[1], "correct or remove it", path...)
	}
	return document.At(kind+" is wrong: "+strict[0].Error(), "correct it")
}

// unknownField matches the decoder's message about a field that it does not know.
func unknownField() *regexp.Regexp { return regexp.MustCompile(`^unknown field "(.+)"$`) }

// wrongType matches the decoder's message about a value of the wrong type: the value's type, the field and its type.
func wrongType() *regexp.Regexp {
	return regexp.MustCompile(`cannot unmarshal (\w+) into Go struct field \w+\.(\S+) of type (\S+)$`)
}

// pathOf splits a path such as spec.runtimePatches[0].manager into names and indexes.
func pathOf(text string) []any {
	var path []any
	for part := range strings.SplitSeq(text, ".") {
		name, rest, _ := strings.Cut(part, "[")
		path = append(path, name)
		for rest != "" {
			var index string
			index, rest, _ = strings.Cut(rest, "]")
			if number, err := strconv.Atoi(index); err == nil {
				path = append(path, number)
			}
			rest = strings.TrimPrefix(rest, "[")
		}
	}
	return path
}
