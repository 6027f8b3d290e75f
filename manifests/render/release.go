package render

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Release has the name, the namespace and the values for which the chart is rendered.
type Release struct {
	// Name and Namespace are those of the Helm release.
	Name, Namespace string
	// Version is that of the images, and of the application; empty for the chart's own.
	Version string
	// Values override those of the chart.
	Values map[string]any
}

// Default is the release for which names are written in documents and in the profile.
func Default() Release { return Release{Name: "lockstep", Namespace: "lockstep-system"} }

// With returns the release with one more value, at a path with dots.
func (r Release) With(path string, value any) Release {
	values := maps.Clone(r.Values)
	if values == nil {
		values = map[string]any{}
	}
	first, rest, deeper := strings.Cut(path, ".")
	if deeper {
		inner, _ := values[first].(map[string]any)
		value = Release{Values: inner}.With(rest, value).Values
	}
	values[first] = value
	r.Values = values
	return r
}

// WithFile returns the release with the values of a YAML file over its own.
func (r Release) WithFile(content []byte) (Release, error) {
	values, err := loader.LoadValues(bytes.NewReader(content))
	if err != nil {
		return r, fmt.Errorf("reading values: %w", err)
	}
	r.Values = loader.MergeMaps(r.Values, values)
	return r, nil
}

// WithSet returns the release with a value that is written as for helm --set, such as manager.replicas=3.
func (r Release) WithSet(text string) (Release, error) {
	values, err := strvals.Parse(text)
	if err != nil {
		return r, fmt.Errorf("reading a value: %w", err)
	}
	r.Values = loader.MergeMaps(r.Values, values)
	return r, nil
}

// Account is the name by which the API server knows the controller.
func (r Release) Account() string {
	account := "lockstep-controller"
	if manager, ok := r.Values["manager"].(map[string]any); ok {
		if name, ok := manager["serviceAccount"].(string); ok {
			account = name
		}
	}
	return "system:serviceaccount:" + r.Namespace + ":" + account
}

// Namespace returns a release's namespace, as helm install --create-namespace makes it, but that only pods without
// privileges are admitted.
func Namespace(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{
			"name":   name,
			"labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"},
		},
	}}
}
