package dialects

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/cel/library"
)

// expression is a compiled expression. object may be nil.
type expression func(pod *corev1.Pod, object map[string]any) (any, error)

// compile compiles an expression of a type over a pod, and an object if variables name it. Errors name it by field.
func compile(text, field string, of *cel.Type, variables ...string) (expression, error) {
	evaluate, err := compiled(text, field, of, variables...)
	return func(pod *corev1.Pod, object map[string]any) (any, error) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err != nil {
			return nil, fmt.Errorf("reading the pod: %w", err)
		}
		return evaluate(map[string]any{"pod": content, "object": object})
	}, err
}

// evaluation is a compiled expression over variables.
type evaluation func(variables map[string]any) (any, error)

// compiled compiles an expression of a type, nil for any, over variables.
func compiled(text, field string, of *cel.Type, variables ...string) (evaluation, error) {
	options := []cel.EnvOption{ext.Strings(), cel.OptionalTypes(), library.Lists(), library.Regex()}
	for _, variable := range variables {
		options = append(options, cel.Variable(variable, cel.DynType))
	}
	environment, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("preparing expressions: %w", err)
	}
	checked, issues := environment.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s: %s: %w", field, strings.Join(strings.Fields(issues.Err().Error()), " "), ErrRow)
	}
	if got := checked.OutputType(); of != nil && !got.IsExactType(of) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%s is of type %s, and must be of type %s: %w", field, got, of, ErrRow)
	}
	program, err := environment.Program(checked, cel.CostLimit(cost))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", field, err, ErrRow)
	}
	return func(variables map[string]any) (any, error) {
		value, _, err := program.Eval(variables)
		if err != nil {
			return nil, fmt.Errorf("it cannot be evaluated: %w", err)
		}
		return value.Value(), nil
	}, nil
}
