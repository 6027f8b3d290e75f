package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/sizing"
	"github.com/lockstep-project/lockstep/topology"
)

// gpuNodes are nodes with GPUs of so many GiB, in NVLink domains of so many nodes; 0 for domains of their own.
func gpuNodes(product string, count, devices, memory, together int) []sizing.Node {
	var out []sizing.Node
	for i := range count {
		node := sizing.Node{
			Name: fmt.Sprintf(
				"%s-%d",
				product,
				i,
			),
			Resource: "nvidia.com/gpu",
			Devices:  int64(devices),
			Memory:   int64(memory) << 30,
			Product:  product,
			PinKey:   "nvidia.com/gpu.product",
			PinValue: product,
			Labels:   map[string]string{"nvidia.com/gpu.product": product},
		}
		if together > 0 {
			node.Domain = fmt.Sprintf("%s.%d", product, i/together)
		}
		out = append(out, node)
	}
	return out
}

func tainted(nodes []sizing.Node) []sizing.Node {
	for i := range nodes {
		nodes[i].Taints = []corev1.Taint{
			{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule},
		}
	}
	return nodes
}

// autoFleets are the fleets that cases name.
func autoFleets() map[string][]sizing.Node {
	return map[string][]sizing.Node{
		"h100":  gpuNodes("NVIDIA-H100-80GB-HBM3", 4, 8, 80, 0),
		"l4":    gpuNodes("NVIDIA-L4", 3, 1, 24, 0),
		"mixed": append(gpuNodes("NVIDIA-H100-80GB-HBM3", 4, 8, 80, 0), gpuNodes("Tesla-T4", 3, 4, 15, 0)...),
		"gb200": gpuNodes("NVIDIA-GB200", 36, 4, 186, 18),
		"taint": tainted(gpuNodes("NVIDIA-H100-80GB-HBM3", 4, 8, 80, 0)),
		"quiet": gpuNodes("NVIDIA-GB200", 4, 4, 0, 18),
	}
}

// autoCase is a job, in YAML without the fields that all share, on a shipped runtime or one of a file's text.
type autoCase struct {
	Name    string
	Fleet   string
	Runtime string
	Job     trainerv1alpha1.TrainJob
}

// TestFill fills jobs with automatic resources: testdata-auto/cases.yaml has the jobs, want.txt the answers.
func TestFill(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata-auto", "cases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []autoCase
	if err = yaml.UnmarshalStrict(text, &cases); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, c := range cases {
		var shipped trainerv1alpha1.ClusterTrainingRuntime
		readYAML(t, filepath.Join("../../manifests/chart/runtimes", c.Runtime+".yaml"), &shipped)
		runtime := plan.Runtime{
			Kind:        shipped.Kind,
			Name:        shipped.Name,
			Annotations: shipped.Annotations,
			Spec:        shipped.Spec,
		}
		fleet := sizing.Fleet{Nodes: autoFleets()[c.Fleet], Known: true}
		job := c.Job.DeepCopy()
		job.Name, job.Namespace, job.Spec.RuntimeRef.Name = "train", "team-a", c.Runtime
		before := job.DeepCopy()
		filled, reason := plan.Fill(job, runtime, fleet)
		if diff := cmp.Diff(before, job); diff != "" {
			t.Errorf("%s: the job was changed:\n%s", c.Name, diff)
		}
		fmt.Fprintf(&out, "== %s\n%s", c.Name, answer(t, filled, reason))
		if c.Name == "torchtune on small and large GPUs of one resource" {
			compareShown(t, answer(t, filled, reason))
		}
		if filled == nil {
			continue
		}
		completed := complete(job, filled)
		if again, why := plan.Fill(completed, runtime, sizing.Fleet{}); again != nil || why != "" {
			t.Errorf("%s: a completed job is completed again: %v %s", c.Name, again, why)
		}
		planned, err := plan.New(completed, runtime, plan.Options{Gang: true})
		if err != nil {
			t.Errorf("%s: completed, it is refused: %v", c.Name, err)
			continue
		}
		if planned.Chosen != filled.Patch.TrainingRuntimeSpec.Template.Metadata.Annotations[topology.AnnotationChosen] {
			t.Errorf("%s: the owner is told %q", c.Name, planned.Chosen)
		}
	}
	goldenText(t, filepath.Join("testdata-auto", "want.txt"), out.String())
}

// complete is a job as the webhook stores it.
func complete(job *trainerv1alpha1.TrainJob, filled *plan.Filled) *trainerv1alpha1.TrainJob {
	out := job.DeepCopy()
	if out.Spec.Trainer == nil {
		out.Spec.Trainer = &trainerv1alpha1.Trainer{}
	}
	out.Spec.Trainer.NumNodes, out.Spec.Trainer.ResourcesPerNode = &filled.Nodes, &filled.Resources
	out.Spec.RuntimePatches = append(out.Spec.RuntimePatches, filled.Patch)
	return out
}

func answer(t *testing.T, filled *plan.Filled, reason string) string {
	t.Helper()
	switch {
	case reason != "":
		return "refused: " + reason + "\n"
	case filled == nil:
		return "untouched\n"
	}
	text, err := yaml.Marshal(map[string]any{
		"numNodes": filled.Nodes, "resourcesPerNode": filled.Resources, "runtimePatch": filled.Patch,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func goldenText(t *testing.T, file, text string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// A job that no webhook has completed is refused by the reconciler, and by admission with the reason.
func TestAutoFault_NotFilled(t *testing.T) {
	t.Parallel()
	var shipped trainerv1alpha1.ClusterTrainingRuntime
	readYAML(t, "../../manifests/chart/runtimes/torch-distributed.yaml", &shipped)
	runtime := plan.Runtime{Kind: shipped.Kind, Name: shipped.Name, Spec: shipped.Spec}
	job := &trainerv1alpha1.TrainJob{}
	job.Name, job.Namespace, job.Annotations = "train", "team-a", map[string]string{
		topology.AnnotationAutoResources: "true",
	}
	job.Spec.RuntimeRef.Name = shipped.Name
	faults := plan.Validate(job, runtime, plan.Options{})
	if len(faults) != 1 || !strings.Contains(faults[0].Error(), "filled in by the controller's webhook") {
		t.Errorf("it is refused with %v", faults)
	}
	fleet := sizing.Fleet{Nodes: autoFleets()["h100"], Known: true}
	if fault := plan.AutoFault(
		job,
		runtime,
		fleet,
	); fault == nil ||
		!strings.Contains(fault.Error(), "nothing says how large the model is") {
		t.Errorf("without a size the reason is %v", fault)
	}
	job.Annotations[topology.AnnotationModel] = "parameters=1B"
	if fault := plan.AutoFault(
		job,
		runtime,
		fleet,
	); fault == nil ||
		!strings.Contains(fault.Error(), "create it again") {
		t.Errorf("of a job that passed the webhook by the reason is %v", fault)
	}
	if fault := plan.AutoFault(
		job,
		runtime,
		sizing.Fleet{},
	); fault == nil ||
		!strings.Contains(fault.Error(), "not known yet") {
		t.Errorf("before nodes are known the reason is %v", fault)
	}
	job.Annotations[topology.AnnotationAutoResources] = "false"
	if fault := plan.AutoFault(job, runtime, fleet); fault != nil {
		t.Errorf("a job that asks for nothing is refused: %v", fault)
	}
}

// compareShown holds the answer that docs/auto-resources.md shows against one, or writes it.
func compareShown(t *testing.T, text string) {
	t.Helper()
	const file, begin, end = "../../docs/auto-resources.md", "<!-- go test ./controller/plan -run TestFill -rewrite: answer -->\n", "<!-- end -->\n"
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no block for the answer", file)
	}
	goldenText(t, file, before+begin+"```\n"+text+"```\n"+end+after)
}

// Kueue counts resourcesPerNode in place of the runtime's resources, so a queued job names all of them; and requests of
// GPUs are their limits.
func TestFill_QueuedJobNamesAllResources(t *testing.T) {
	t.Parallel()
	var shipped trainerv1alpha1.ClusterTrainingRuntime
	readYAML(t, "../../manifests/chart/runtimes/pytorch-distributed-gpu.yaml", &shipped)
	container := &shipped.Spec.Template.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0]
	container.Resources.Requests = corev1.ResourceList{
		"cpu":            resource.MustParse("4"),
		"nvidia.com/gpu": resource.MustParse("1"),
	}
	runtime := plan.Runtime{Kind: shipped.Kind, Name: shipped.Name, Spec: shipped.Spec}
	job := &trainerv1alpha1.TrainJob{}
	job.Name, job.Namespace, job.Labels = "train", "team-a", map[string]string{plan.KueueQueueLabel: "team-a"}
	job.Annotations = map[string]string{
		topology.AnnotationAutoResources: "true",
		topology.AnnotationModel:         "parameters=8B,sharding=fsdp,activations=checkpointed",
	}
	job.Spec.RuntimeRef.Name = shipped.Name
	filled, reason := plan.Fill(job, runtime, sizing.Fleet{Nodes: autoFleets()["h100"], Known: true})
	if filled == nil {
		t.Fatal(reason)
	}
	cpu, requested, limit := filled.Resources.Requests["cpu"], filled.Resources.Requests["nvidia.com/gpu"], filled.Resources.Limits["nvidia.com/gpu"]
	if cpu.Value() != 4 || requested.Value() != 4 || limit.Value() != 4 {
		t.Errorf("each node has %v", filled.Resources)
	}
	if fault := plan.Uncounted(complete(job, filled), runtime); fault != nil {
		t.Error(fault)
	}
}
