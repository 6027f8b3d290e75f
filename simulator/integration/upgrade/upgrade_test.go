package upgrade_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

const team = "upgrade"

func trainer(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: resource}
}

// Jobs that the previous controller rendered, queued, running or suspended again, continue with the runtime that it
// stored for them; a job that is created after the upgrade has the runtime of that time, also after the downgrade by
// the commands of docs/trust.md. No running pod is touched.
func TestUpgrade_JobsKeepTheirFrozenRuntime(t *testing.T) {
	before, now := previousRelease(t), thisRelease(t)
	installFirst(t, before)
	scene(t)
	for _, name := range []string{"queued", "running", "paused"} {
		testcluster.Within(
			t,
			time.Minute,
			"the JobSet of "+name,
			func() bool { return image(t, name) == "example.com/torch:1" },
		)
	}
	patch(t, trainer("trainjobs"), "paused", `{"spec":{"suspend":true}}`)
	var pods []types.UID
	testcluster.Within(t, time.Minute, "the running job's pods, and the end of the paused one's", func() bool {
		pods = uids(t, "running")
		return len(pods) == 2 && len(uids(t, "paused")) == 0
	})
	edit(t, "example.com/torch:2")

	upgrade(t, now)
	resume(t, "queued", "paused")
	job(t, "later", "")
	job(t, "back", "suspended")
	run(t, map[string]string{
		"queued": "example.com/torch:1", "running": "example.com/torch:1", "paused": "example.com/torch:1",
		"later": "example.com/torch:2",
	})
	want := "map[back:example.com/torch:2 later:example.com/torch:2 paused:example.com/torch:1 " +
		"queued:example.com/torch:1 running:example.com/torch:1]"
	testcluster.Within(
		t,
		time.Minute,
		"the frozen runtimes",
		func() bool { return fmt.Sprint(frozenImages(t)) == want },
	)
	t.Logf("frozen: %v", frozenImages(t))

	edit(t, "example.com/torch:3")
	rollBack(t, before, "jobsets") // the first release cannot replace them
	resume(t, "back")
	run(t, map[string]string{"back": "example.com/torch:2", "running": "example.com/torch:1"})
	if got := uids(t, "running"); fmt.Sprint(got) != fmt.Sprint(pods) {
		t.Errorf("the running job's pods are %v now, they were %v", got, pods)
	}

	upgrade(t, now)
	for _, name := range []string{"queued", "running", "paused", "later", "back"} {
		err := shared.Dynamic.Resource(trainer("trainjobs")).
			Namespace(team).
			Delete(t.Context(), name, metav1.DeleteOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	testcluster.Within(t, time.Minute, "the end of all that the jobs made", func() bool {
		configs, err := shared.Client.CoreV1().ConfigMaps(team).List(t.Context(), metav1.ListOptions{
			FieldSelector: "metadata.name!=kube-root-ca.crt", // each namespace has it
		})
		return err == nil && len(configs.Items) == 0 && len(frozenImages(t)) == 0
	})
}

// edit changes the image of the runtime, as its administrator would.
func edit(t *testing.T, image string) {
	t.Helper()
	patch(
		t,
		trainer("trainingruntimes"),
		"torch",
		`[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image",`+
			`"value":"`+image+`"}]`,
	)
}

func resume(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		patch(t, trainer("trainjobs"), name, `{"spec":{"suspend":false}}`)
	}
}

// run waits until both pods of each job run, and compares their images.
func run(t *testing.T, images map[string]string) {
	t.Helper()
	for name, want := range images {
		testcluster.Within(t, time.Minute, "the pods of "+name, func() bool { return len(uids(t, name)) == 2 })
		if got := image(t, name); got != want {
			t.Errorf("%s runs %s, want %s", name, got, want)
		}
	}
}

// scene makes a runtime and three jobs of it, one of them queued.
func scene(t *testing.T) {
	t.Helper()
	_, err := shared.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, trainer("trainingruntimes"), testcluster.TorchRuntime("torch", "10m"))
	job(t, "running", "")
	job(t, "paused", "")
	job(t, "queued", "suspended")
}

// job makes a TrainJob of the runtime, suspended or as usual.
func job(t *testing.T, name, state string) {
	t.Helper()
	create(t, trainer("trainjobs"), map[string]any{
		"kind": "TrainJob", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"suspend":    state == "suspended",
			"runtimeRef": map[string]any{"kind": "TrainingRuntime", "name": "torch"},
		},
	})
}

func create(t *testing.T, resource schema.GroupVersionResource, content map[string]any) {
	t.Helper()
	content["apiVersion"] = "trainer.kubeflow.org/v1alpha1"
	_, err := shared.Dynamic.Resource(resource).Namespace(team).
		Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// patch changes an object by a JSON patch, if it is a list, or by a merge patch.
func patch(t *testing.T, resource schema.GroupVersionResource, name, text string) {
	t.Helper()
	kind := types.MergePatchType
	if strings.HasPrefix(text, "[") {
		kind = types.JSONPatchType
	}
	_, err := shared.Dynamic.Resource(resource).Namespace(team).
		Patch(t.Context(), name, kind, []byte(text), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// image is that of the pods in a job's JobSet; empty while it has none.
func image(t *testing.T, name string) string {
	t.Helper()
	jobSets := schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
	jobSet, err := shared.Dynamic.Resource(jobSets).Namespace(team).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	replicated, _, _ := unstructured.NestedSlice(jobSet.Object, "spec", "replicatedJobs")
	return imageOf(replicated)
}

// imageOf is that of the first container of the first of some ReplicatedJobs.
func imageOf(replicated []any) string {
	if len(replicated) == 0 {
		return ""
	}
	first, _ := replicated[0].(map[string]any)
	containers, _, _ := unstructured.NestedSlice(first, "template", "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	container, _ := containers[0].(map[string]any)
	return fmt.Sprint(container["image"])
}

// frozenImages are the images of the frozen runtimes, by the names of their jobs.
func frozenImages(t *testing.T) map[string]string {
	t.Helper()
	states := schema.GroupVersionResource{Group: "state.lockstep.dev", Version: "v1alpha1", Resource: "frozentrainjobs"}
	list, err := shared.Dynamic.Resource(states).Namespace("lockstep-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for _, state := range list.Items {
		name, _, _ := unstructured.NestedString(state.Object, "spec", "trainJob", "name")
		replicated, _, _ := unstructured.NestedSlice(
			state.Object,
			"spec",
			"runtime",
			"spec",
			"template",
			"spec",
			"replicatedJobs",
		)
		images[name] = imageOf(replicated)
	}
	return images
}

// uids are those of a job's pods that run.
func uids(t *testing.T, name string) []types.UID {
	t.Helper()
	var found []types.UID
	for _, pod := range shared.PodsOf(t.Context(), t, team, name) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			found = append(found, pod.UID)
		}
	}
	return found
}
