package capture_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture/capturetest"
)

var rewrite = flag.Bool("rewrite", false, "write what came out over what was wanted")

// take takes a snapshot of a server and returns its text.
func take(t *testing.T, server *capturetest.Server, options capture.Options) (string, error) {
	t.Helper()
	cluster, err := capture.Connect(t.Context(), &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	options.Taken = time.Date(2026, 11, 22, 7, 0, 0, 5, time.UTC)
	var out bytes.Buffer
	_, err = capture.Take(t.Context(), cluster, options, &out)
	return out.String(), err
}

func mustTake(t *testing.T, server *capturetest.Server, options capture.Options) string {
	t.Helper()
	text, err := take(t, server, options)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func fixture(t *testing.T) *capturetest.Server {
	t.Helper()
	content, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return capturetest.New(t, string(content))
}

// The files in testdata are snapshots of testdata/cluster.yaml.
func TestTake_MatchesCommittedSnapshots(t *testing.T) {
	for _, test := range []struct {
		file    string
		options capture.Options
	}{
		{"cluster.snapshot.json", capture.Options{}},
		{"anonymous.snapshot.json", capture.Options{Anonymize: true}},
	} {
		t.Run(test.file, func(t *testing.T) {
			got := mustTake(t, fixture(t), test.options)
			golden := filepath.Join("testdata", test.file)
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// All user-defined texts of testdata/cluster.yaml are removed, but the exceptions of the package's documentation stay:
// names of resources, and numbers that a selector compares.
func TestTake_AnonymousHasNoSecret(t *testing.T) {
	text := strings.ToLower(mustTake(t, fixture(t), capture.Options{Anonymize: true}))
	text = strings.ReplaceAll(text, "zeus.example/fpga", "")
	for _, secret := range []string{
		"zeus", "moonbase", "olymp", "hades", "argo", "jason", "fleece", "heroic", "lotophagi", "colchis", "golden", "hunter2",
		"medea", "5ec2e7", "10.99", "ithaca", "troy", "odysseus", "pythia", "delphi", "oracle", "fumes", "sisyphus", "boulder",
		"example", "11111111", "22222222", "33333333", "44444444",
	} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is still there", secret)
		}
	}
}

func node(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name}}
}

// pods creates pods in two namespaces; one name begins as the other does: etcd has a-b/… before a/….
func pods(t *testing.T, server *capturetest.Server, count int) {
	t.Helper()
	for i := range count {
		server.Add(t, map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": fmt.Sprintf("p-%04d", i), "namespace": []string{"a", "a-b"}[i%2]},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
		})
	}
}

func TestTake_PagesAndOrdersLists(t *testing.T) {
	server := capturetest.New(t, "")
	pods(t, server, 1203)
	snapshot, err := capture.Read(strings.NewReader(mustTake(t, server, capture.Options{})), "pods.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(snapshot.Pods) != 1203 || server.Calls["pods"] != 3 {
		t.Errorf("%d pods in %d pages, want 1203 in 3", len(snapshot.Pods), server.Calls["pods"])
	}
	names := make([]string, 0, len(snapshot.Pods))
	for _, pod := range snapshot.Pods {
		names = append(names, pod.Namespace+" "+pod.Name)
	}
	if !slices.IsSorted(names) {
		t.Error("the pods are not ordered by namespace and name")
	}
}

// expired answers a page, by its number, with 410.
func expired(resource string, calls ...int) func(string, int) (int, metav1.StatusReason) {
	return func(asked string, call int) (int, metav1.StatusReason) {
		if asked == resource && slices.Contains(calls, call) {
			return http.StatusGone, metav1.StatusReasonExpired
		}
		return 0, ""
	}
}

func TestTake_RestartsExpiredListOnce(t *testing.T) {
	server := capturetest.New(t, "")
	server.Add(t, node("n"))
	pods(t, server, 1203)
	want := mustTake(t, server, capture.Options{})

	server.Calls, server.Fail = map[string]int{}, expired("pods", 3)
	if got := mustTake(t, server, capture.Options{}); got != want {
		t.Error("a list that expired on its third page came out otherwise")
	}
	if server.Calls["pods"] != 6 || server.Calls["nodes"] != 1 {
		t.Errorf("%d pages of pods, %d of nodes; want 6 and 1", server.Calls["pods"], server.Calls["nodes"])
	}

	server.Calls, server.Fail = map[string]int{}, expired("pods", 3, 6)
	text, err := take(t, server, capture.Options{})
	if err == nil || badinput.Is(err) || text != "" || !strings.Contains(err.Error(), "listing pods") {
		t.Errorf(
			"a list that expires twice: %v, and %d bytes; want an error that is no bad input, and nothing",
			err,
			len(text),
		)
	}
}

func TestTake_UnservedKindsAreAbsent(t *testing.T) {
	server := capturetest.New(t, "")
	server.Add(t, node("n"))
	server.Served = []string{"pods"}
	snapshot, err := capture.Read(strings.NewReader(mustTake(t, server, capture.Options{})), "file")
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]capture.State{}
	for _, kind := range snapshot.Manifest.Kinds {
		states[kind.Resource] = kind.State
	}
	if len(states) != 26 || states["nodes"] != capture.Captured || states["pods"] != capture.Captured ||
		states["devicetaintrules"] != capture.Absent {
		t.Errorf("the manifest says %v", states)
	}
}

// A snapshot does not depend on the API that stores gangs: pods that joined by the label are members as those with the
// field are.
func TestTake_GangsOfEitherAPI(t *testing.T) {
	const objects = `apiVersion: VERSION
kind: PodGroup
metadata: {name: gang, namespace: team-a}
spec: {schedulingPolicy: {gang: {minCount: 1}}}
---
apiVersion: v1
kind: Pod
metadata: {name: rank-0, namespace: team-a, labels: {lockstep.dev/pod-group: gang}}
spec: {containers: [{name: main, image: train}]}
`
	var taken []string
	for _, api := range []gangapi.API{gangapi.Native, gangapi.Resources} {
		server := capturetest.New(t, strings.ReplaceAll(objects, "VERSION", api.Version().String()))
		text := mustTake(t, server, capture.Options{})
		snapshot, err := capture.Read(strings.NewReader(text), "file")
		if err != nil {
			t.Fatal(err)
		}
		if len(snapshot.PodGroups) != 1 || len(snapshot.Pods) != 1 || snapshot.Pods[0].Spec.SchedulingGroup == nil {
			t.Errorf("%s: %d groups, pods %v", api, len(snapshot.PodGroups), snapshot.Pods)
		}
		file, err := capture.ReadObjects(
			[]byte(strings.ReplaceAll(objects, "VERSION", api.Version().String())),
			"objects",
		)
		if err != nil || len(file.PodGroups) != 1 || file.Pods[0].Spec.SchedulingGroup == nil {
			t.Errorf("%s: a file of objects: %+v (%v)", api, file, err)
		}
		taken = append(taken, text)
	}
	if taken[0] != taken[1] {
		t.Errorf("the snapshots differ:\n%s\n%s", taken[0], taken[1])
	}
}

// Whatever the shipped scheduler may list, a snapshot has, or says that the server has not.
func TestTake_CapturesWhatTheSchedulerLists(t *testing.T) {
	snapshot, err := capture.Read(strings.NewReader(mustTake(t, capturetest.New(t, ""), capture.Options{})), "file")
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := render.Chart(render.Default())
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, object := range rendered.Find("ClusterRole", "lockstep-scheduler") {
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			// Gangs that are custom resources are in a snapshot as the native ones (TestTake_GangsOfEitherAPI).
			if !slices.Contains(rule.Verbs, "list") || slices.Contains(rule.APIGroups, gangapi.Group) {
				continue
			}
			for _, resource := range rule.Resources {
				// The fields that are read of the objects behind other controllers' marks are in the PodGroups of these
				// gangs.
				behindMarks := []string{
					"podgroups.scheduling.x-k8s.io",
					"leaderworkersets.leaderworkerset.x-k8s.io",
					"jobsets.jobset.x-k8s.io",
					"jobs.batch",
				}
				if strings.Contains(resource, "/") || slices.Contains(behindMarks, resource+"."+rule.APIGroups[0]) {
					continue
				}
				listed++
				if !slices.ContainsFunc(snapshot.Manifest.Kinds, func(k capture.Kind) bool {
					return k.Resource == resource && slices.Contains(rule.APIGroups, k.Group)
				}) {
					t.Errorf("the scheduler lists %s %v, which no snapshot has", resource, rule.APIGroups)
				}
			}
		}
	}
	if listed != 21 {
		t.Errorf("the scheduler lists %d kinds, want 21", listed)
	}
}

func TestTake_ForbiddenListIsBadInput(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusUnauthorized} {
		server := capturetest.New(t, "")
		server.Fail = func(resource string, _ int) (int, metav1.StatusReason) {
			switch {
			case resource != "resourceslices":
				return 0, ""
			case code == http.StatusForbidden:
				return code, metav1.StatusReasonForbidden
			}
			return code, metav1.StatusReasonUnauthorized
		}
		text, err := take(t, server, capture.Options{})
		if !badinput.Is(err) || text != "" {
			t.Fatalf("error %v and %d bytes, want bad input and nothing", err, len(text))
		}
		for _, want := range []string{server.URL, "list", "resourceslices", `"resource.k8s.io"`, "ClusterRole"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
	}
}

// A live cluster in memory is the file, read.
func TestLive_EqualsItsFile(t *testing.T) {
	server := fixture(t)
	cluster, err := capture.Connect(t.Context(), &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	options := capture.Options{Taken: time.Unix(0, 0)}
	live, err := capture.Live(t.Context(), cluster, options)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := capture.Take(t.Context(), cluster, options, &file); err != nil {
		t.Fatal(err)
	}
	read, err := capture.Read(&file, "file")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := printed(t, live), printed(t, read); got != want || len(live.Pods) != 2 {
		t.Errorf("live:\n%s\nfile:\n%s", got, want)
	}
	server.Fail = expired("pods", 2, 3, 4, 5, 6)
	server.Calls = map[string]int{"pods": 1}
	if _, err := capture.Live(
		t.Context(),
		cluster,
		options,
	); err == nil ||
		!strings.Contains(err.Error(), "listing pods") {
		t.Errorf("error %v, want that of the list", err)
	}
	server.Fail = func(string, int) (int, metav1.StatusReason) {
		return http.StatusForbidden, metav1.StatusReasonForbidden
	}
	if _, err := capture.Live(t.Context(), cluster, options); !badinput.Is(err) {
		t.Errorf("error %v, want bad input", err)
	}
}

func printed(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A reader of the file finds the old one or the whole new one, and a run that breaks leaves nothing else.
func TestSave_WholeFileOrTheOldOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.snapshot.json.gz")
	write := func(text string, fault error) error {
		return capture.Save(path, func(_ string, out io.Writer) error {
			if _, err := io.WriteString(out, text); err != nil {
				return err
			}
			return fault
		})
	}
	whole := mustTake(t, fixture(t), capture.Options{})
	if err := write(whole, nil); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the server died")
	if err := write("half of it", broken); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if snapshot, err := capture.ReadFile(path); err != nil || len(snapshot.Nodes) != 2 {
		t.Errorf("%d nodes, %v; want the file as it was", len(snapshot.Nodes), err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
		t.Error("a file called .gz is not compressed")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v are in the directory, want the file alone", entries, err)
	}
}
