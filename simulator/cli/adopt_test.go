package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A cluster without TrainJobs is bad input, as every fault of the command line is: one line, exit 2, no table.
func TestAdopt_BadInputIsOneLine(t *testing.T) {
	empty := emptyCluster(t)
	for _, test := range []struct {
		name string
		args []string
		want []string // in this order, in the one line
	}{
		{"no dry run", nil, []string{"adopt: ", "--dry-run is missing", "--take-over"}},
		{"form", []string{"--dry-run", "-o", "yaml"}, []string{"-o yaml: ", "use text or json"}},
		{"argument", []string{"--dry-run", "train"}, []string{"adopt: ", `"train"`, "--help"}},
		{"argument before the flags", []string{"--dry-run", "train", "--", "--gang-default=on"}, []string{`"train"`}},
		{"controller's flag", []string{"--dry-run", "--", "--gang-default=maybe"}, []string{"--gang-default=maybe: ", "on or off"}},
		{"no such flag", []string{"--dry-run", "--", "--gangs"}, []string{"--gangs", "lockstep-controller --help"}},
		{
			"no kubeconfig",
			[]string{"--dry-run", "--kubeconfig", filepath.Join(t.TempDir(), "none")},
			[]string{"--kubeconfig ", "no such file"},
		},
		{"no TrainJobs", []string{"--dry-run", "--kubeconfig", empty}, []string{"the cluster: ", "PodGroup"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, stderr := execute(t, append([]string{"adopt"}, test.args...)...)
			if code != 2 || out != "" || strings.Count(stderr, "\n") != 1 {
				t.Fatalf("exit %d, stdout %q, stderr %q; want 2 and one line", code, out, stderr)
			}
			rest := stderr
			for _, part := range test.want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("%q does not say %q (in this order)", stderr, part)
				}
				rest = after
			}
		})
	}
}

// emptyCluster is the kubeconfig of an API server that serves no kinds.
func emptyCluster(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "APIVersions", "versions": []string{}})
		case "/apis":
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}})
		default:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(map[string]any{
				"kind":       "Status",
				"apiVersion": "v1",
				"status":     "Failure",
				"reason":     "NotFound",
				"code":       http.StatusNotFound,
			})
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: empty, cluster: {server: %q}}]
contexts: [{name: empty, context: {cluster: empty, user: empty}}]
users: [{name: empty}]
current-context: empty
`, server.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
