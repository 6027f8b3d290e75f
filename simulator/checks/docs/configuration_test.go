package docs_test

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

func configuration(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(generated(
		"Configuration",
		"manifests/chart and scheduler/config",
		"The values of the chart, the arguments of the scheduler's plugins, and the profile that the chart installs. A value or field that is misspelled stops the "+
			"installation or the start with its name.",
	))
	out.WriteString("## Values of the chart\n\n```yaml\n" + text(t, "manifests/chart/values.yaml") + "```\n\n")
	files := append(parsed(t, "scheduler/config"), parsed(t, "scheduler/dialects")...)
	for _, name := range []string{"GangPlacementArgs", "GangPermitArgs"} {
		plugin := strings.TrimSuffix(name, "Args")
		_, _ = fmt.Fprintf(
			&out,
			"## Arguments of %s\n\nFields of `scheduler.pluginArgs.%s` in the values, and of `pluginConfig` in a profile.\n\n",
			plugin,
			plugin,
		)
		out.WriteString("| field | type | meaning |\n|---|---|---|\n")
		fieldsOf(t, &out, files, name, "")
		out.WriteString("\n")
	}
	out.WriteString("## Profile\n\n```yaml\n" + text(t, "manifests/chart/profile.yaml") + "```\n\n")
	out.WriteString(
		"## lockstep-controller\n\nIts [flags](flags.md#lockstep-controller), and by `--config` the fields of Kubeflow Trainer's configuration file. " +
			"These have an effect; others are accepted, and named in the log:\n\n",
	)
	for _, path := range usedFields(t) {
		_, _ = fmt.Fprintf(&out, "* `%s`\n", path)
	}
	return out.String()
}

// fieldsOf prints the rows of a struct's fields, and of the structs that these hold.
func fieldsOf(t *testing.T, out *strings.Builder, files []*ast.File, name, prefix string) {
	t.Helper()
	fields := structOf(files, name)
	if fields == nil {
		return
	}
	for _, field := range fields.Fields.List {
		key := tagged(field)
		if key == "" {
			continue
		}
		kind, inner := plainType(field.Type)
		if structOf(files, inner) != nil {
			kind = strings.Replace(kind, inner, "object", 1)
		} else if inner != "" && inner != "string" {
			kind = strings.Replace(kind, inner, "string", 1)
		}
		_, _ = fmt.Fprintf(out, "| `%s%s` | %s | %s |\n", prefix, key, kind, cell(sentences(field.Doc)))
		deeper := prefix + key
		if strings.HasPrefix(kind, "list") {
			deeper += "[]"
		}
		if inner != "" {
			fieldsOf(t, out, files, inner, deeper+".")
		}
	}
}

// usedFields returns the fields of Kubeflow Trainer's configuration file that have an effect.
func usedFields(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, file := range parsed(t, "controller/config") {
		object := file.Scope.Lookup("usedFields")
		if object == nil {
			continue
		}
		ast.Inspect(object.Decl.(*ast.FuncDecl), func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok {
				paths = append(paths, strings.Trim(literal.Value, `"`))
			}
			return true
		})
	}
	if len(paths) == 0 {
		t.Fatal("controller/config has no usedFields")
	}
	return paths
}
