// Package capturetest is an API server for tests of snapshots: it lists the given objects, page by page, over HTTP.
package capturetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Server is an API server that only lists. It serves the resources that its objects are of, and those of Served.
type Server struct {
	*httptest.Server
	// Served are resources that are served without any objects: resourceslices.
	Served []string
	// Fail answers a list in the server's place with an HTTP status and a reason, unless the status is 0. It is given
	// the resource and which list of that resource it is, from 1.
	Fail func(resource string, call int) (int, metav1.StatusReason)

	// Calls counts the lists that were asked for, by resource.
	Calls   map[string]int
	objects map[schema.GroupResource][]map[string]any
}

// New starts a server that has the objects of a YAML text. It stops with the test.
func New(t *testing.T, objects string) *Server {
	t.Helper()
	s := &Server{Calls: map[string]int{}, objects: map[schema.GroupResource][]map[string]any{}}
	for document := range strings.SplitSeq(objects, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if object != nil {
			s.Add(t, object)
		}
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

// Add gives the server one more object.
func (s *Server) Add(t *testing.T, object map[string]any) {
	t.Helper()
	kind, ok := object["kind"].(string)
	if !ok {
		t.Fatalf("an object has no kind: %v", object)
	}
	resource := strings.ToLower(kind) + "s"
	if strings.HasSuffix(kind, "ss") {
		resource = strings.ToLower(kind) + "es"
	}
	if stem, ok := strings.CutSuffix(kind, "y"); ok {
		resource = strings.ToLower(stem) + "ies"
	}
	version, _ := object["apiVersion"].(string)
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	id := schema.GroupResource{Group: group, Resource: resource}
	s.objects[id] = append(s.objects[id], object)
}

// Kubeconfig writes a kubeconfig for the server and returns its path.
func (s *Server) Kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test}}]
`, s.URL)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource := path[len(path)-1]
	if resource == "version" {
		_, _ = w.Write([]byte(`{"major":"1","minor":"37","gitVersion":"v1.37.1"}`))
		return
	}
	s.Calls[resource]++
	if s.Fail != nil {
		if code, reason := s.Fail(resource, s.Calls[resource]); code != 0 {
			refuse(w, code, reason, fmt.Sprintf("cannot list resource %q at the cluster scope", resource))
			return
		}
	}
	id := schema.GroupResource{Resource: resource}
	if path[0] == "apis" {
		id.Group = path[1]
	}
	objects, ok := s.objects[id]
	if !ok && !slices.Contains(s.Served, resource) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
		return
	}
	s.page(w, r, objects)
}

// page answers with as many objects as were asked for, in the reverse of the order that a snapshot has.
func (s *Server) page(w http.ResponseWriter, r *http.Request, objects []map[string]any) {
	limit, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("limit"), "1000000"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	from, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("continue"), "0"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	reversed := slices.Clone(objects)
	slices.Reverse(reversed)
	to := min(from+limit, len(reversed))
	metadata := map[string]any{"resourceVersion": "4711"}
	if to < len(reversed) {
		metadata["continue"] = strconv.Itoa(to)
	}
	write(w, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": reversed[from:to]})
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.WriteHeader(code)
	write(w, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code), Message: message,
	})
}

func write(w http.ResponseWriter, answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // an object of the test cannot be printed
	}
	_, _ = w.Write(text) // a client that has disconnected needs no answer
}
