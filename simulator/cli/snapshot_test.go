package cli_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture/capturetest"
)

const twoNodes = `apiVersion: v1
kind: Node
metadata: {name: tray-1}
---
apiVersion: v1
kind: Node
metadata: {name: tray-2}
---
apiVersion: v1
kind: Pod
metadata: {name: done, namespace: lab}
spec: {containers: [{name: c, image: i}]}
status: {phase: Failed}
`

func TestSnapshot_SavesFileAndPrintsSummary(t *testing.T) {
	server := capturetest.New(t, twoNodes)
	t.Setenv("KUBECONFIG", server.Kubeconfig(t))
	for _, name := range []string{"c.snapshot.json.gz", "c.json"} {
		file := filepath.Join(t.TempDir(), name)
		code, out, stderr := execute(t, "snapshot", "-o", file)
		if code != 0 || out != "" {
			t.Fatalf("exit %d, stdout %q: %s", code, out, stderr)
		}
		for _, want := range []string{file + ": 2 nodes", "0 pods (and 1 that have ended, left out)", "not served: ", "csidrivers"} {
			if !strings.Contains(stderr, want) {
				t.Errorf("%q is not in: %s", want, stderr)
			}
		}
		snapshot, err := capture.ReadFile(file)
		if err != nil || len(snapshot.Nodes) != 2 || snapshot.Manifest.Anonymized {
			t.Errorf("%d nodes, %v", len(snapshot.Nodes), err)
		}
		content, err := os.ReadFile(file)
		if err != nil || strings.HasPrefix(string(content), "{") != (name == "c.json") {
			t.Errorf("%s begins with %q, %v", name, content[:2], err)
		}
	}
	code, out, stderr := execute(t, "snapshot", "--anonymize", "-o", "-")
	snapshot, err := capture.Read(strings.NewReader(out), "stdout")
	if code != 0 || err != nil || len(snapshot.Nodes) != 2 || strings.Contains(out, "tray") {
		t.Errorf("exit %d, %v: %s\n%s", code, err, stderr, out)
	}
}

func TestSnapshot_RefusesInOneLine(t *testing.T) {
	dir := t.TempDir()
	server := capturetest.New(t, twoNodes)
	server.Fail = func(resource string, _ int) (int, metav1.StatusReason) {
		if resource == "resourceslices" {
			return http.StatusForbidden, metav1.StatusReasonForbidden
		}
		return 0, ""
	}
	config := server.Kubeconfig(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dead := write("dead", strings.Replace(string(content), server.URL, unused, 1))
	torn := write("torn", "kind: [")
	file := filepath.Join(dir, "c.json.gz")
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))

	for _, test := range []struct {
		name string
		args []string
		want []string // in this order, in the one line
	}{
		{"no file", []string{"--kubeconfig", config}, []string{"-o: ", "add -o"}},
		{"an argument", []string{"c.json"}, []string{"snapshot: ", "--help"}},
		{"no kubeconfig", []string{"-o", file}, []string{filepath.Join(dir, "none"), "--kubeconfig", "KUBECONFIG"}},
		{"no such kubeconfig", []string{"--kubeconfig", filepath.Join(dir, "gone"), "-o", file}, []string{"--kubeconfig ", "gone: ", "no such file"}},
		{"a torn kubeconfig", []string{"--kubeconfig", torn, "-o", file}, []string{"--kubeconfig ", "torn: "}},
		{"nobody there", []string{"--kubeconfig", dead, "-o", file}, []string{unused + ": ", "refused", "context"}},
		{"forbidden", []string{"--kubeconfig", config, "-o", file}, []string{server.URL, "cannot list", "resourceslices", "ClusterRole"}},
		{"a directory", []string{"--kubeconfig", config, "-o", dir}, []string{"-o " + dir, "is a directory", "name a file"}},
		{"no such directory", []string{"--kubeconfig", config, "-o", dir + "/no/c.gz"}, []string{"-o ", "no such file", "directory"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, stderr := execute(t, append([]string{"snapshot"}, test.args...)...)
			line, rest, _ := strings.Cut(stderr, "\n")
			if code != 2 || out != "" || rest != "" || !strings.HasPrefix(line, "lockstep: ") {
				t.Errorf("exit %d, stdout %q, want exit 2, nothing, and one line:\n%s", code, out, stderr)
			}
			at := 0
			for _, part := range test.want {
				found := strings.Index(line[at:], part)
				if found < 0 {
					t.Fatalf("%q is not in, or not in order in: %s", part, line)
				}
				at += found
			}
		})
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v are in the directory, want the two kubeconfigs alone", entries, err)
	}
}

// A server that dies on the way is a fault, not bad input, and leaves no file.
func TestSnapshot_LeavesNoFileOnServerFault(t *testing.T) {
	server := capturetest.New(t, twoNodes)
	server.Fail = func(resource string, _ int) (int, metav1.StatusReason) {
		if resource == "services" {
			return http.StatusInternalServerError, metav1.StatusReasonInternalError
		}
		return 0, ""
	}
	dir := t.TempDir()
	code, out, stderr := execute(
		t,
		"snapshot",
		"--kubeconfig",
		server.Kubeconfig(t),
		"-o",
		filepath.Join(dir, "c.json.gz"),
	)
	if code != 1 || out != "" || !strings.Contains(stderr, "listing services") {
		t.Errorf("exit %d, stdout %q: %s", code, out, stderr)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v are in the directory, want nothing", entries, err)
	}
}
