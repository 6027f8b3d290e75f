package admission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/admission"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

func TestCheckRuntime(t *testing.T) {
	const jobs = "spec.template.spec.replicatedJobs"
	const pod = ".template.spec.template"
	for name, c := range map[string]struct{ runtime, want string }{
		"no steps of ours": {
			runtime: `spec: {template: {spec: {replicatedJobs: [{name: x, replicas: 3}, {name: node, replicas: 0}]}}}`,
		},
		"a trainer twice": {
			runtime: step("trainer", 2, "sidecar, node"),
			want:    jobs + "[0].replicas: Invalid value: 2: always must be 1",
		},
		"a trainer of two slices": {runtime: sliced(step("trainer", 2, "node"), "jax")},
		"a trainer of two slices of a framework that has none": {
			runtime: sliced(step("trainer", 2, "node"), "torch"),
			want:    jobs + "[0].replicas: Invalid value: 2: always must be 1",
		},
		"a trainer of no slice": {
			runtime: sliced(step("trainer", 0, "node"), "jax"),
			want:    jobs + "[0].replicas: Invalid value: 0: always must be 1",
		},
		"a dataset initializer twice": {
			runtime: sliced(step("dataset-initializer", 2, "dataset-initializer"), "jax"),
			want:    jobs + "[0].replicas: Invalid value: 2: always must be 1",
		},
		"no trainer": {
			runtime: step("trainer", 0, "trainer"),
			want: "[" + jobs + "[0].replicas: Invalid value: 0: always must be 1, " + jobs + "[0]" + pod +
				`.spec.containers: Invalid value: "[trainer]": must contain the required container for the ancestor: trainer]`,
		},
		"a dataset initializer": {runtime: step("dataset-initializer", 1, "dataset-initializer")},
		"a dataset initializer without containers": {
			runtime: step("dataset-initializer", 1, ""),
			want: jobs + "[0]" + pod + `.spec.containers: Invalid value: "[]": must contain the required container for ` +
				"the ancestor: dataset-initializer",
		},
		"a model initializer with the wrong container": {
			runtime: step("model-initializer", 1, "node"),
			want: jobs + "[0]" + pod + `.spec.containers: Invalid value: "[node]": must contain the required container ` +
				"for the ancestor: model-initializer",
		},
		"an unknown step": {runtime: step("evaluator", 4, "")},
		"good annotations": {
			runtime: `{metadata: {annotations: {lockstep.dev/gang: "on", lockstep.dev/segment-size: "4", acme.io/a: b}},
				spec: {template: {metadata: {annotations: {lockstep.dev/scheduler: native, lockstep.dev/spares: ""}}}}}`,
		},
		"an annotation that does not exist": {
			runtime: `metadata: {annotations: {lockstep.dev/gnag: "on"}}`,
			want: "metadata.annotations[lockstep.dev/gnag]: Invalid value: \"on\": there is no such annotation; there are " +
				"lockstep.dev/auto-resources, lockstep.dev/communication, ",
		},
		"a runtime that no job could keep": {
			runtime: `metadata: {annotations: {acme.io/a: "` + strings.Repeat("a", 1<<20) + `"}}`,
			want: "spec: Too long: may not be more than 1048576 bytes as JSON, because each of its jobs keeps a copy; " +
				"move files into a volume or an image",
		},
		"wrong values on the runtime": {
			runtime: `metadata: {annotations: {lockstep.dev/gang: maybe, lockstep.dev/spares: "-1"}}`,
			want: `[metadata.annotations[lockstep.dev/gang]: Invalid value: "maybe": must be one of on, off, ` +
				`metadata.annotations[lockstep.dev/spares]: Invalid value: "-1": must be an integer of at least 0]`,
		},
		"a wrong value on the JobSet template": {
			runtime: `spec: {template: {metadata: {annotations: {lockstep.dev/communication: star}}}}`,
			want: `spec.template.metadata.annotations[lockstep.dev/communication]: Invalid value: "star": ` +
				`must be one of ring, chain, all-to-all`,
		},
		"a wrong value on a pod template": {
			runtime: `spec: {template: {spec: {replicatedJobs: [{name: a}, {name: b, template: {spec: {template:
				{metadata: {annotations: {lockstep.dev/max-per-node: many, lockstep.dev/other: x}}}}}}]}}}`,
			want: jobs + "[1]" + pod + `.metadata.annotations[lockstep.dev/max-per-node]: Invalid value: "many": ` +
				`must be an integer of at least 1`,
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			var rt trainerv1alpha1.TrainingRuntime
			if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(c.runtime, "\t", "")), &rt); err != nil {
				t.Fatal(err)
			}
			check(t, admission.JudgeRuntime(&rt), c.want, "")
			cluster := &trainerv1alpha1.ClusterTrainingRuntime{ObjectMeta: rt.ObjectMeta, Spec: rt.Spec}
			check(t, admission.JudgeClusterRuntime(nil, cluster), c.want, "")
			if c.want == "" {
				return
			}
			check(t, admission.JudgeClusterRuntime(&trainerv1alpha1.ClusterTrainingRuntime{}, cluster), c.want, "")
			released := cluster.DeepCopy()
			released.Finalizers = []string{"a/b"}
			check(t, admission.JudgeClusterRuntime(released, cluster), "", "")
			leaving := cluster.DeepCopy()
			leaving.DeletionTimestamp = &metav1.Time{Time: now()}
			check(t, admission.JudgeClusterRuntime(&trainerv1alpha1.ClusterTrainingRuntime{}, leaving), "", "")
		})
	}
}

func TestJudgeClusterRuntime_DeprecatedWarnsOnCreate(t *testing.T) {
	rt := &trainerv1alpha1.ClusterTrainingRuntime{ObjectMeta: metav1.ObjectMeta{
		Name: "rt", Labels: map[string]string{"trainer.kubeflow.org/support": "deprecated"},
	}}
	check(t, admission.JudgeClusterRuntime(nil, rt), "", deprecated)
	check(t, admission.JudgeClusterRuntime(rt, rt), "", "")
}

func TestShippedRuntimes_AreAdmitted(t *testing.T) {
	files, err := filepath.Glob("../../manifests/chart/runtimes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no runtimes: %v", err)
	}
	for _, file := range files {
		var rt trainerv1alpha1.ClusterTrainingRuntime
		readYAML(t, file, &rt)
		for i := range rt.Spec.Template.Spec.ReplicatedJobs { // the API server's default
			job := &rt.Spec.Template.Spec.ReplicatedJobs[i]
			job.Replicas = max(1, job.Replicas)
		}
		check(t, admission.JudgeClusterRuntime(nil, &rt), "", "")
	}
}

// step is a runtime with one ReplicatedJob.
// sliced adds the policy of a framework to a runtime.
func sliced(runtime, framework string) string {
	return strings.Replace(runtime, "spec: {", "spec: {mlPolicy: {"+framework+": {}}, ", 1)
}

func step(ancestor string, replicas int, containers string) string {
	var list []string
	for name := range strings.SplitSeq(containers, ", ") {
		if name != "" {
			list = append(list, "{name: "+name+"}")
		}
	}
	return "spec: {template: {spec: {replicatedJobs: [{name: x, replicas: " + string(rune('0'+replicas)) +
		", template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: " + ancestor +
		"}}, spec: {template: {spec: {containers: [" + strings.Join(list, ", ") + "]}}}}}]}}}"
}

func readYAML(tb testing.TB, file string, into any) {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if err = yaml.UnmarshalStrict(text, into); err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
}
