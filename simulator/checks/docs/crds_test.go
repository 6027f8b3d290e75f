package docs_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// depth limits the fields of a CRD that are listed: spec.trainer.image has three steps.
const depth = 3

func crds(t *testing.T) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "manifests/chart/crds/*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no CRDs (%v)", err)
	}
	var out strings.Builder
	out.WriteString(generated(
		"Custom resources",
		"manifests/chart/crds",
		"The fields of each kind, down to three steps; `kubectl explain --recursive KIND` has all. `lockstep crds` prints the CRDs.",
	))
	for _, path := range paths {
		var crd apiextensionsv1.CustomResourceDefinition
		read(t, strings.TrimPrefix(path, root+"/"), &crd)
		writeCRD(&out, crd.Spec)
	}
	return out.String()
}

func writeCRD(out *strings.Builder, crd apiextensionsv1.CustomResourceDefinitionSpec) {
	var versions []string
	for _, version := range crd.Versions {
		versions = append(versions, "`"+version.Name+"`")
	}
	latest := crd.Versions[0]
	for _, version := range crd.Versions {
		if version.Storage {
			latest = version
		}
	}
	_, _ = fmt.Fprintf(out, "## %s\n\nGroup `%s`, versions %s, scope %s. %s\n\n", crd.Names.Kind, crd.Group,
		strings.Join(versions, ", "), crd.Scope, firstSentence(latest.Schema.OpenAPIV3Schema.Description))
	if len(latest.AdditionalPrinterColumns) > 0 {
		out.WriteString("Columns of `kubectl get`:")
		for i, column := range latest.AdditionalPrinterColumns {
			wide := ""
			if column.Priority > 0 {
				wide = " (with `-o wide`)"
			}
			_, _ = fmt.Fprintf(out, "%s %s%s", map[bool]string{true: ",", false: ""}[i > 0], column.Name, wide)
		}
		out.WriteString(".\n\n")
	}
	out.WriteString("| field | type | meaning |\n|---|---|---|\n")
	writeFields(out, latest.Schema.OpenAPIV3Schema, nil)
	out.WriteString("\n")
}

// writeFields prints the rows of the fields below a path.
func writeFields(out *strings.Builder, schema *apiextensionsv1.JSONSchemaProps, path []string) {
	var names []string
	for name := range schema.Properties {
		if len(path) > 0 || name == "spec" || name == "status" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		field := schema.Properties[name]
		here := append(slices.Clone(path), name)
		inner, kind := &field, field.Type
		if field.Items != nil {
			inner, kind = field.Items.Schema, "list of "+field.Items.Schema.Type
			here[len(here)-1] += "[]"
		}
		if field.XIntOrString {
			kind = "integer or string"
		}
		_, _ = fmt.Fprintf(
			out,
			"| `%s` | %s | %s |\n",
			strings.Join(here, "."),
			kind,
			cell(firstSentence(field.Description)),
		)
		if len(here) < depth {
			writeFields(out, inner, here)
		}
	}
}

// firstSentence returns the first sentence of a description.
func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if i := strings.Index(text, ". "); i >= 0 {
		return text[:i+1]
	}
	return text
}
