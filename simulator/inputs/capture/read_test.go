package capture_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
)

// compressed is a text as gzip has it.
func compressed(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	if _, err := packed.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// An incomplete snapshot is refused in one line with the place, the fault and the remedy.
func TestRead_RefusesBadFiles(t *testing.T) {
	good := mustTake(t, fixture(t), capture.Options{})
	packed := compressed(t, good)
	lines := strings.SplitAfter(good, "\n")
	without := func(i int) string { return strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), "") }
	manifest, firstNode := lines[0], lines[1]
	for _, test := range []struct {
		name, text string
		want       []string // in this order
	}{
		{"nothing", "", []string{"c.json: ", "empty", "lockstep snapshot"}},
		{"something else", "kind: Node\n", []string{"c.json:1: ", "no manifest"}},
		{"an object first", firstNode, []string{"c.json:1: ", `the format is ""`}},
		{
			"a newer format", strings.Replace(good, "snapshot/v1", "snapshot/v2", 1),
			[]string{"c.json:1: ", `"lockstep.dev/snapshot/v2"`, "lockstep.dev/snapshot/v1", "this version"},
		},
		{
			"another version of a kind",
			strings.Replace(good, `"podgroups","group":"scheduling.k8s.io","version":"v1beta1"`,
				`"podgroups","group":"scheduling.k8s.io","version":"v1"`, 1),
			[]string{"c.json:1: ", "podgroups are of scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1", "this version"},
		},
		{
			"a kind that is needed",
			strings.Replace(good, `{"resource":"csinodes"`, `{"resource":"csinotes"`, 1),
			[]string{"c.json:1: ", "nothing of csinodes.storage.k8s.io", "take it again"},
		},
		{
			"a lost line", without(1),
			[]string{"c.json:1: ", "the manifest says 2 nodes, the file has 1: it was cut off; take it again"},
		},
		{"the end lost", strings.Join(lines[:5], ""), []string{"c.json:1: ", "the manifest says 1 workloads, the file has 0"}},
		{"a torn line", strings.Join(lines[:3], "") + lines[3][:40], []string{"c.json:4: ", "not whole", "take it again"}},
		{"a line twice", manifest + firstNode + firstNode, []string{"c.json:3: ", "zeus-tray-10", "line 2"}},
		{
			"one too many", good + strings.Replace(firstNode, "zeus-tray-10", "zeus-tray-11", 1),
			[]string{"c.json:1: ", "2 nodes, the file has 3: it was changed"},
		},
		{"no resource", manifest + "{}\n", []string{"c.json:2: ", "no resource"}},
		{
			"no such object", manifest + `{"resource":"nodes","object":{"metadata":{"name":7}}}`,
			[]string{"c.json:2: ", "no Node", "name"},
		},
		{"no name", manifest + `{"resource":"nodes","object":{}}`, []string{"c.json:2: ", "Node has no name"}},
		{"cut off in gzip", packed[:len(packed)-20], []string{"c.json:", "cut off here"}},
		{"gzip without anything", packed[:5], []string{"c.json: ", "cut off"}},
		{"damaged gzip", packed[:40] + "XXXX" + packed[44:], []string{"c.json:", "damaged"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := capture.Read(strings.NewReader(test.text), "c.json")
			if !badinput.Is(err) {
				t.Fatalf("error %v, want bad input", err)
			}
			at := 0
			for _, part := range test.want {
				found := strings.Index(err.Error()[at:], part)
				if found < 0 {
					t.Fatalf("%q is not in, or not in order in: %v", part, err)
				}
				at += found
			}
		})
	}
}

// A file of a later version may have more kinds; a warning names them.
func TestRead_WarnsOfUnknownKinds(t *testing.T) {
	good := mustTake(t, fixture(t), capture.Options{})
	more := strings.Replace(
		good,
		`"kinds":[`,
		`"kinds":[{"resource":"compositepodgroups","group":"scheduling.k8s.io","version":"v1","count":1,"state":"captured"},`,
		1,
	) +
		`{"resource":"compositepodgroups","object":{"metadata":{"name":"c"}}}` + "\n" +
		`{"resource":"queues","object":{"metadata":{"name":"q"}}}` + "\n"
	snapshot, err := capture.Read(strings.NewReader(compressed(t, more)), "c.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	if len(snapshot.Nodes) != 2 || len(snapshot.Warnings) != 2 ||
		!strings.Contains(
			snapshot.Warnings[0],
			"compositepodgroups (1)",
		) || !strings.Contains(snapshot.Warnings[1], "queues") {
		t.Errorf("%d nodes, warnings %q", len(snapshot.Nodes), snapshot.Warnings)
	}
}

// Every kind is read back with its own type.
func TestRead_EveryKind(t *testing.T) {
	snapshot, err := capture.Read(
		strings.NewReader(mustTake(t, fixture(t), capture.Options{Anonymize: true})),
		"c.json",
	)
	if err != nil {
		t.Fatal(err)
	}
	got := [...]int{
		len(snapshot.Nodes), len(snapshot.Namespaces), len(snapshot.PriorityClasses), len(snapshot.Workloads),
		len(snapshot.PodGroups), len(snapshot.Pods), len(snapshot.PodDisruptionBudgets), len(snapshot.DeviceClasses),
		len(snapshot.ResourceSlices), len(snapshot.ResourceClaims), len(snapshot.PersistentVolumeClaims),
		len(snapshot.PersistentVolumes), len(snapshot.StorageClasses), len(snapshot.CSINodes), len(snapshot.Services),
		len(snapshot.StatefulSets), len(snapshot.TrainJobs), len(snapshot.ClusterTrainingRuntimes),
	}
	if want := [...]int{2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1}; got != want {
		t.Errorf("read %v, want %v", got, want)
	}
	if gpus := snapshot.Nodes[0].Status.Allocatable["nvidia.com/gpu"]; gpus.Value() != 4 ||
		*snapshot.Pods[0].Spec.Priority != 1000 {
		t.Errorf("the first node has %s GPUs", gpus.String())
	}
}
