package rights_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/rights"
)

// shipped are the rights of all roles in the chart.
func shipped(t *testing.T) []rights.Right {
	t.Helper()
	allowed, err := rights.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return allowed
}

// recorded are the requests that the integration tests were seen to make.
func recorded(t *testing.T) []rights.Request {
	t.Helper()
	var requests []rights.Request
	for _, record := range []string{"testdata/requests.txt", "testdata/requests-resources.txt"} {
		content, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		found, err := rights.Parse(string(content))
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, found...)
	}
	return requests
}

// Every right of every role was seen in use, or a row names the code that uses it. An unused rule fails here, and so
// does a row that nothing needs, or whose code no longer exists.
func TestShipped_EachRightIsUsed(t *testing.T) {
	allowed := shipped(t)
	unused := rights.Unused(allowed, recorded(t))
	rows := unseen()
	needed := make([]bool, len(rows))
	for _, right := range unused {
		held := false
		for i, row := range rows {
			if row.holds(right, allowed, unused) {
				held, needed[i] = true, true
			}
		}
		if !held {
			t.Errorf(
				"%s: nothing is known to use this right; take it out of the role, or show its use (see unseen)",
				right,
			)
		}
	}
	code := sources(t, rows)
	for i, row := range rows {
		if !needed[i] {
			t.Errorf("row %d, %s %s of %s: no role has such a right that was not seen in use; take the row out",
				i, row.verbs, row.resources, row.role)
		}
		if !strings.Contains(code[row.file], row.code) {
			t.Errorf(
				"row %d, %s %s of %s: %s does not contain %q any more",
				i,
				row.verbs,
				row.resources,
				row.role,
				row.file,
				row.code,
			)
		}
	}
}

// holds reports whether the row names the user of the right.
func (r row) holds(right rights.Right, allowed, unused []rights.Right) bool {
	if r.role != "" && r.role != right.Role || !slices.Contains(strings.Fields(r.verbs), right.Verb) ||
		r.resources != "" && !slices.Contains(strings.Fields(r.resources), right.Resource) {
		return false
	}
	return r.with == "" || slices.ContainsFunc(allowed, func(other rights.Right) bool {
		return other.Role == right.Role && other.Resource == right.Resource && other.Namespace == right.Namespace &&
			other.Verb == r.with && !slices.Contains(unused, other)
	})
}

// sources reads the files of the rows: of this repository, or of a module that it is built from.
func sources(t *testing.T, rows []row) map[string]string {
	t.Helper()
	folders, modules := map[string]string{"": "../../.."}, []string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}
	for _, row := range rows {
		if module, _, ok := strings.Cut(row.file, ":"); ok && folders[module] == "" {
			folders[module] = "unknown"
			modules = append(modules, module)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", modules...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		module, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		folders[module] = folder
	}
	code := map[string]string{}
	for _, row := range rows {
		module, file, ok := strings.Cut(row.file, ":")
		if !ok {
			module, file = "", row.file
		}
		text, err := os.ReadFile(filepath.Join(folders[module], file))
		if err != nil {
			t.Error(err)
		}
		code[row.file] = string(text)
	}
	return code
}

// A duplicate right in a role hides that one of them is not needed; with a wildcard no test can list the permissions.
func TestShipped_NoRightTwiceAndNoWildcards(t *testing.T) {
	seen := map[rights.Right]bool{}
	for _, right := range shipped(t) {
		if seen[right] {
			t.Errorf("%s is there twice", right)
		}
		seen[right] = true
		if strings.Contains(right.Verb+right.Resource, "*") {
			t.Errorf("%s has a wildcard", right)
		}
	}
}

// Whatever is added to a shipped role is found: a verb, a resource, a name, a namespace in which it was not asked for.
func TestUnused_FindsWhatIsAdded(t *testing.T) {
	before := rights.Unused(shipped(t), recorded(t))
	const cluster, leases = "lockstep-controller", "lockstep-controller-leader-election"
	for name, change := range map[string]struct {
		role  string
		added map[string]any
		want  string
	}{
		"verb": {
			cluster, rule("", "secrets", "list"), "ClusterRole lockstep-controller: list /secrets",
		},
		"resource": {
			cluster, rule("apps", "deployments", "get"), "ClusterRole lockstep-controller: get apps/deployments",
		},
		"subresource": {
			cluster, rule("", "pods/exec", "create"), "ClusterRole lockstep-controller: create /pods/exec",
		},
		"path": {
			cluster,
			map[string]any{"nonResourceURLs": []any{"/debug"}, "verbs": []any{"get"}},
			"ClusterRole lockstep-controller: get /debug",
		},
		"wildcard": {cluster, rule("*", "*", "*"), "ClusterRole lockstep-controller: * */*"},
		"name": {
			leases, map[string]any{
				"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"}, "verbs": []any{"get", "update"},
				"resourceNames": []any{"kube-scheduler"},
			}, "Role lockstep-controller-leader-election: update coordination.k8s.io/leases kube-scheduler",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render.Chart(render.Default())
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range rendered.Objects {
				if object.GetName() == change.role && strings.HasSuffix(object.GetKind(), "Role") {
					object.Object["rules"] = append(object.Object["rules"].([]any), change.added)
				}
			}
			allowed, err := rights.Of(rendered.Objects)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, right := range rights.Unused(allowed, recorded(t)) {
				if !slices.Contains(before, right) {
					found = append(found, right.String())
				}
			}
			if !slices.Contains(found, change.want) {
				t.Errorf("found %q, want %q", found, change.want)
			}
		})
	}
}

// rule lets a verb be done to a resource.
func rule(group, resource, verb string) map[string]any {
	return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{verb}}
}
