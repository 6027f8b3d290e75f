// Package chart is the Helm chart of Lockstep, embedded so that a binary carries the chart that it was built with.
//
// Files of the chart that are also read by themselves: profile.yaml is the scheduler's configuration, rights are the
// rules of the controller's role, runtimes and crds are plain manifests.
package chart

import (
	"embed"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// SchemaAnnotation is the key of a CRD's annotation with a checksum of its spec.
const SchemaAnnotation = "lockstep.dev/schema"

// Files holds the files of the chart, under their paths in it.
//
//go:embed Chart.yaml .helmignore values.yaml values.schema.json profile.yaml all:templates crds rights runtimes dashboards
var Files embed.FS

//go:embed profile.yaml
var profile []byte

// Profile returns the shipped configuration of lockstep-scheduler, for namespace lockstep-system.
func Profile() []byte { return append([]byte(nil), profile...) }

// CRDs returns the CustomResourceDefinitions, in the order of their files.
func CRDs() ([]*unstructured.Unstructured, error) { return objects("crds/*.yaml") }

// Runtimes returns the ClusterTrainingRuntimes, in the order of their files.
func Runtimes() ([]*unstructured.Unstructured, error) { return objects("runtimes/*.yaml") }

// objects reads files that hold one object each.
func objects(pattern string) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(Files, pattern)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", pattern, err)
	}
	var found []*unstructured.Unstructured
	for _, name := range names {
		content, err := Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &object.Object); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", name, err)
		}
		found = append(found, object)
	}
	return found, nil
}
