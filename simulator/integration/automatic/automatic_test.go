package automatic_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/topology"
)

var trainJobs = schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}

// jobOf is a TrainJob with automatic resources and more annotations, with the rest of its spec.
func jobOf(name, annotations, spec string) string {
	return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s, namespace: default, annotations: {lockstep.dev/auto-resources: "true", simulator.lockstep.dev/run-time: 5s%s}}
spec: {%s}
`, name, annotations, spec)
}

const torchtune3B = "runtimeRef: {name: torchtune-llama3.2-3b}, trainer: {command: [tune, run]}"

// create sends a job to the API server; options may make it a dry run.
func create(t *testing.T, text string, options metav1.CreateOptions) (*trainerv1alpha1.TrainJob, error) {
	t.Helper()
	return createIn(t.Context(), t, text, options)
}

// createIn is create with a context, as a cleanup needs one that has not ended with the test.
func createIn(
	ctx context.Context, t *testing.T, text string, options metav1.CreateOptions,
) (*trainerv1alpha1.TrainJob, error) {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	jobs := shared.Dynamic.Resource(trainJobs).Namespace(metav1.NamespaceDefault)
	stored, err := jobs.Create(ctx, &object, options)
	if err != nil {
		return nil, err
	}
	if len(options.DryRun) == 0 {
		t.Cleanup(func() {
			err := jobs.Delete(context.WithoutCancel(ctx), object.GetName(), metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
	return typed(t, stored), nil
}

func typed(t *testing.T, object *unstructured.Unstructured) *trainerv1alpha1.TrainJob {
	t.Helper()
	job := &trainerv1alpha1.TrainJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, job); err != nil {
		t.Fatal(err)
	}
	return job
}

func get(t *testing.T, name string) *trainerv1alpha1.TrainJob {
	t.Helper()
	found, err := shared.Dynamic.Resource(trainJobs).
		Namespace(metav1.NamespaceDefault).
		Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return typed(t, found)
}

// size is a job's nodes x GPUs; "" for one that does not say.
func size(job *trainerv1alpha1.TrainJob) string {
	trainer := job.Spec.Trainer
	if trainer == nil || trainer.NumNodes == nil || trainer.ResourcesPerNode == nil {
		return ""
	}
	gpus := trainer.ResourcesPerNode.Limits["nvidia.com/gpu"]
	return fmt.Sprintf("%d x %s", *trainer.NumNodes, gpus.String())
}

// words returns the words of the entry with the result; "" for a job without one.
func words(job *trainerv1alpha1.TrainJob) string {
	for _, patch := range job.Spec.RuntimePatches {
		if patch.Manager == plan.AutoManager {
			return patch.TrainingRuntimeSpec.Template.Metadata.Annotations[topology.AnnotationChosen]
		}
	}
	return ""
}

// trainers are the pods of a job that train, once all of them run or have run.
func trainers(t *testing.T, job string, count int) []corev1.Pod {
	t.Helper()
	var out []corev1.Pod
	testcluster.Within(t, time.Minute, "the pods of "+job, func() bool {
		out = nil
		for _, pod := range shared.PodsOf(t.Context(), t, metav1.NamespaceDefault, job) {
			started := pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodSucceeded
			if started && strings.HasPrefix(pod.Name, job+"-node-") {
				out = append(out, pod)
			}
		}
		return len(out) == count
	})
	return out
}

// A job of torchtune's gets the one GPU that holds it, on a node where that is large enough; its entry, its JobSet and
// an Event say how that was computed, and it runs to its end.
func TestAuto_TorchtuneGetsItsDevices(t *testing.T) {
	job, err := create(t, jobOf("tuned", "", torchtune3B), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if size(job) != "1 x 1" ||
		!strings.HasPrefix(
			words(job),
			"1 node x 1 nvidia.com/gpu (NVIDIA-H100-80GB-HBM3, 79.6 GiB): torchtune's llama3_2/3B",
		) {
		t.Errorf("it is %q: %s", size(job), words(job))
	}
	pod := trainers(t, "tuned", 1)[0]
	gpus := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
	if !strings.HasPrefix(pod.Spec.NodeName, "h100-") || gpus.Value() != 1 {
		t.Errorf("pod %s is on %s with %s GPUs", pod.Name, pod.Spec.NodeName, gpus.String())
	}
	testcluster.Within(t, 20*time.Second, "the Event", func() bool {
		events, err := shared.Client.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.name=tuned,reason=ResourcesChosen",
		})
		return err == nil && len(events.Items) == 1 && events.Items[0].Message == words(job)
	})
	testcluster.Within(t, time.Minute, "the end", func() bool { return get(t, "tuned").Ended() })
	if after := get(t, "tuned"); after.Generation != 1 || size(after) != "1 x 1" {
		t.Errorf("it was written to later: generation %d, %s", after.Generation, size(after))
	}
}

// Any trainer that says its size gets several whole nodes, of one NVLink domain, and starts there as a gang.
func TestAuto_ADescribedModelGetsAnNVLinkDomain(t *testing.T) {
	job, err := create(
		t,
		jobOf("described", `, lockstep.dev/model: "parameters=70B,sharding=fsdp,activations=checkpointed"`,
			"runtimeRef: {name: torch-distributed}"),
		metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	if size(job) != "2 x 4" || !strings.HasSuffix(words(job), "because other nodes have smaller ones") ||
		!strings.Contains(words(job), "they fit into one NVLink domain") {
		t.Errorf("it is %q: %s", size(job), words(job))
	}
	for _, pod := range trainers(t, "described", 2) {
		if !strings.HasPrefix(pod.Spec.NodeName, "tray-") {
			t.Errorf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
}

// The owner's own values stay, whatever the fleet.
func TestAuto_OwnResourcesStay(t *testing.T) {
	own := "runtimeRef: {name: torchtune-llama3.2-3b}, trainer: {command: [tune, run], numNodes: 1, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}"
	job, err := create(t, jobOf("own", "", own), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || size(job) != "1 x 4" || len(job.Spec.RuntimePatches) != 0 {
		t.Errorf("it is %+v, %v", job, err)
	}
}

// A job for which there is no answer is refused with the reason, in one line.
func TestAuto_RefusedWithTheReason(t *testing.T) {
	for name, c := range map[string]struct{ annotations, spec, want string }{
		"size": {"", "runtimeRef: {name: jax-distributed}", "nothing says how large the model is; add annotation lockstep.dev/model"},
		"fits": {
			`, lockstep.dev/model: "parameters=1T,sharding=fsdp"`, "runtimeRef: {name: torch-distributed}",
			"nothing fits: even 4 nodes x 4 nvidia.com/gpu (NVIDIA-GB200, 185.0 GiB) are too few",
		},
		"words": {`, lockstep.dev/model: "8 billion"`, "runtimeRef: {name: torch-distributed}", "must be key=value"},
	} {
		_, err := create(
			t,
			jobOf("refused", c.annotations, c.spec),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}},
		)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: it is refused with %v, want %q", name, err, c.want)
		}
	}
}

// Another fleet is another answer for new jobs, and changes no job that has one.
func TestAuto_LaterFleetChangesNothing(t *testing.T) {
	suspended := strings.Replace(jobOf("waits", "", torchtune3B), "spec: {", "spec: {suspend: true, ", 1)
	before, err := create(t, suspended, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { restore(t, words(before)) })
	relabel(t, "h100-", "8192")
	relabel(t, "t4-", "8192")
	testcluster.Within(t, 10*time.Second, "another answer for a new job", func() bool {
		job, err := create(t, jobOf("new", "", torchtune3B), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && strings.Contains(words(job), "NVIDIA-GB200")
	})
	jobs := shared.Dynamic.Resource(trainJobs).Namespace(metav1.NamespaceDefault)
	_, err = jobs.Patch(
		t.Context(),
		"waits",
		types.MergePatchType,
		[]byte(`{"spec":{"suspend":false}}`),
		metav1.PatchOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	pod := trainers(t, "waits", 1)[0]
	after := get(t, "waits")
	if !strings.HasPrefix(pod.Spec.NodeName, "h100-") || size(after) != size(before) || words(after) != words(before) ||
		words(after) == "" {
		t.Errorf("it was %q and is %q, on %s: %s", size(before), size(after), pod.Spec.NodeName, words(after))
	}
	// kubectl apply of the owner's file leaves the entry out when the file has patches of its own.
	_, err = jobs.Patch(
		t.Context(),
		"waits",
		types.MergePatchType,
		[]byte(`{"spec":{"runtimePatches":null}}`),
		metav1.PatchOptions{},
	)
	if err != nil || words(get(t, "waits")) != words(before) {
		t.Errorf("after an apply (%v) it says %q", err, words(get(t, "waits")))
	}
}

// restore gives the GPUs their memory back, and returns when the webhook, which reads the nodes from a cache, answers as
// before again.
func restore(t *testing.T, answer string) {
	t.Helper()
	relabel(t, "h100-", "81559")
	relabel(t, "t4-", "15360")
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("the answer for a new job was %q last", last)
		}
	}()
	testcluster.Within(t, time.Minute, "the answer "+answer, func() bool {
		job, err := createIn(context.WithoutCancel(t.Context()), t, jobOf("restored", "", torchtune3B), dry)
		if err != nil {
			last = err.Error()
			return false
		}
		last = words(job)
		return last == answer
	})
}

// relabel changes the memory of the GPUs of nodes whose names begin so, in MiB.
func relabel(t *testing.T, prefix, memory string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	nodes, err := shared.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{"nvidia.com/gpu.memory":%q}}}`, memory)
	for _, node := range nodes.Items {
		if !strings.HasPrefix(node.Name, prefix) {
			continue
		}
		if _, err = shared.Client.CoreV1().
			Nodes().
			Patch(ctx, node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// The samples of the page are admitted as they are shown.
func TestAuto_ThePagesManifests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("../../../docs", "auto-resources.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```yaml\n")
	if len(parts) < 3 {
		t.Fatalf("the page has %d manifests", len(parts)-1)
	}
	for _, part := range parts[1:] {
		manifest, _, _ := strings.Cut(part, "```")
		job, err := create(t, manifest, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || size(job) == "" {
			t.Errorf("%v:\n%s", err, manifest)
		}
	}
}
