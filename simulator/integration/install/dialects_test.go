package install_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

// dialectsOfThePage returns the rows that docs/dialects.md adds to the chart's values.
func dialectsOfThePage(t *testing.T) []any {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "docs", "dialects.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(scheduler:.*?)```").FindSubmatch(content)
	if block == nil {
		t.Fatal("docs/dialects.md has no values")
	}
	var values map[string]any
	if err := yaml.Unmarshal(block[1], &values); err != nil {
		t.Fatal(err)
	}
	rows, _, err := unstructured.NestedSlice(values, "scheduler", "pluginArgs", "GangPlacement", "dialects")
	if err != nil || len(rows) == 0 {
		t.Fatalf("docs/dialects.md has %d dialects (%v)", len(rows), err)
	}
	return rows
}

// alias is the schedulerName that KubeRay writes.
const alias = "scheduler-plugins-scheduler"

// crew creates a gang of a kind that only a row of the configuration knows, one of whose pods gives an alias of the
// scheduler, and waits until it runs.
func crew(t *testing.T) {
	t.Helper()
	for number := range 2 {
		pod := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{
				"namespace":   "default",
				"name":        fmt.Sprintf("crew-%d", number),
				"labels":      map[string]any{"example.com/crew": "night"},
				"annotations": map[string]any{"example.com/crew-size": "2", "example.com/number": strconv.Itoa(number)},
			},
			"spec": map[string]any{
				"schedulerName": []string{"lockstep-scheduler", alias}[number],
				"containers":    []any{map[string]any{"name": "main", "image": "example.com/a"}},
			},
		}}
		if _, err := shared.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name string) bool {
		pod, err := shared.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	}
	eventually(t, "a gang of a configured dialect", func() bool { return is("crew-0") && is("crew-1") })
	group, err := shared.Client.SchedulingV1beta1().
		PodGroups("default").
		Get(t.Context(), "crew.night", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if of := group.Annotations["lockstep.dev/dialect"]; of != "crew" {
		t.Errorf("its PodGroup is of dialect %q", of)
	}
	inSnapshots(t)
	for _, name := range []string{"crew-0", "crew-1"} {
		_, err = shared.Client.CoreV1().Pods("default").Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"example.com/crew":"day"}}}`), metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("pod %s can be moved into another gang: %v", name, err)
		}
	}
	for number := range 2 {
		if err := shared.Client.CoreV1().
			Pods("default").
			Delete(t.Context(), fmt.Sprintf("crew-%d", number), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// inSnapshots checks that a snapshot has the crew as the scheduler reads it: a PodGroup states the row, and the names
// of the scheduler.
func inSnapshots(t *testing.T) {
	t.Helper()
	from, err := capture.Connect(t.Context(), shared.Admin)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := capture.Live(t.Context(), from, capture.Options{Taken: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, pod := range snapshot.Pods {
		if pod.Labels["example.com/crew"] == "" {
			continue
		}
		found++
		group := gangapi.GroupOf(pod.ObjectMeta, pod.Spec)
		rank := pod.Annotations[gangapi.AnnotationRank]
		if group != "crew.night" || pod.Spec.SchedulerName != "lockstep-scheduler" ||
			rank != strings.TrimPrefix(pod.Name, "crew-") {
			t.Errorf(
				"pod %s is in gang %q, of scheduler %s, with rank %q",
				pod.Name,
				group,
				pod.Spec.SchedulerName,
				rank,
			)
		}
	}
	if found != 2 {
		t.Errorf("the snapshot has %d pods of the crew", found)
	}
}
