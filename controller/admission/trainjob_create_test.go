package admission_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/controller/admission"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

func TestValidator_Create(t *testing.T) {
	old := there(t)
	old.found.Deprecated = true
	own := old
	own.found.Runtime.Kind = trainerv1alpha1.TrainingRuntimeKind
	twice, large := there(t), there(t)
	replicatedJobs := twice.found.Runtime.Spec.Template.Spec.ReplicatedJobs
	for i := range replicatedJobs {
		replicatedJobs[i].Replicas = 2
	}
	large.found.Runtime.Annotations = map[string]string{"example.com/files": strings.Repeat("x", 1<<20)}
	long := strings.Repeat("x", 55)
	for name, c := range map[string]struct {
		runtimes       admission.Runtimes
		job            *trainerv1alpha1.TrainJob
		want, warnings string
	}{
		"a good job": {runtimes: there(t), job: trainJob()},
		"a missing cluster runtime": {
			runtimes: missing(), job: trainJob(),
			want: `spec.runtimeRef: Invalid value: "rt": runtime rt: the runtime does not exist: ` +
				`specified clusterTrainingRuntime must be created before the TrainJob is created`,
		},
		"a missing runtime of the namespace": {
			runtimes: missing(), job: trainJob(refersTo("TrainingRuntime")),
			want: `spec.runtimeRef: Invalid value: "rt": runtime rt: the runtime does not exist: ` +
				`specified trainingRuntime must be created before the TrainJob is created`,
		},
		"a kind of runtime that nobody knows": {
			runtimes: finds{err: fmt.Errorf("%w: Other.acme.io", resolve.ErrUnknown)}, job: trainJob(refersTo("Other")),
			want: `unsupported runtime: Other.acme.io`,
		},
		"a runtime of two times its nodes, let in before that was looked at": {
			runtimes: twice, job: trainJob(),
			want: `spec.runtimeRef: Invalid value: "rt": this runtime cannot be used: ` +
				`spec.template.spec.replicatedJobs[1].replicas: Invalid value: 2: always must be 1`,
		},
		"a runtime that no job could keep a copy of": {
			runtimes: large, job: trainJob(),
			want: `spec.runtimeRef: Invalid value: "rt": this runtime cannot be used: spec: Too long: may not be more than 1048576 ` +
				`bytes as JSON, because each of its jobs keeps a copy; move files into a volume or an image`,
		},
		"a deprecated cluster runtime": {runtimes: old, job: trainJob(), warnings: "Referenced " + deprecated},
		"a deprecated cluster runtime and a fault": {
			runtimes: old, job: trainJob(noNodes), warnings: "Referenced " + deprecated,
			want: "spec.trainer.numNodes: Invalid value: 0: must be at least 1",
		},
		"a runtime of the namespace is not called deprecated": {runtimes: own, job: trainJob()},
		"all faults together, as the planner finds them": {
			runtimes: there(t), job: trainJob(noNodes, patchedBy("nobody", "other")),
			want: `[spec.runtimePatches.manager: ` +
				`Invalid value: "nobody": must be a domain-prefixed path (such as "acme.io/foo"), spec.runtimePatches: ` +
				`Invalid value: "other": must not have replicated job that doesn't exist in the runtime job template, ` +
				`spec.trainer.numNodes: Invalid value: 0: must be at least 1]`,
		},
		"a job for MultiKueue is judged all the same": {
			runtimes: missing(), job: trainJob(func(job *trainerv1alpha1.TrainJob) {
				job.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue")
			}),
			want: `spec.runtimeRef: Invalid value: "rt": runtime rt: the runtime does not exist: ` +
				`specified clusterTrainingRuntime must be created before the TrainJob is created`,
		},
		"a name that is just short enough for pods": {runtimes: there(t), job: trainJob(called(long[:53]))},
		"a name too long for pods": {
			runtimes: there(t), job: trainJob(called(long)),
			warnings: "metadata.name: no pods can be made, because pod " + long + "-first-0-0 would have a name of more than " +
				"63 characters; shorten the job's name by 2",
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			got, err := newValidator(t, c.runtimes).Create(t.Context(), c.job)
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, c.want, c.warnings)
		})
	}
}

// A resource that no node has, most likely misspelled, gets a warning at once; one that is used up, or that a class of
// devices stands for, does not.
func TestValidator_UnofferedResourceWarns(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{
			"cpu": resource.MustParse(
				"8",
			),
			"nvidia.com/gpu":     resource.MustParse("4"),
			"example.com/broken": resource.MustParse("0"),
		}},
	}
	class := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: "nic",
		},
		Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: new("example.com/nic")},
	}
	const (
		later = ": no node of this cluster offers it; the job waits until one does"
		more  = "nvidia.com/gpu: a pod asks for 5, and no node of this cluster has more than 4; the job waits until one does"
	)
	for name, c := range map[string]struct {
		asks  string
		count string
		nodes []client.Object
		want  string
	}{
		"as much as a node has":       {asks: "nvidia.com/gpu", count: "4", nodes: []client.Object{node}},
		"more than any node has":      {asks: "nvidia.com/gpu", count: "5", nodes: []client.Object{node}, want: more},
		"what a node has":             {asks: "nvidia.com/gpu", nodes: []client.Object{node}},
		"what none has":               {asks: "nvidia.com/gpuu", nodes: []client.Object{node}, want: "nvidia.com/gpuu" + later},
		"what is broken":              {asks: "example.com/broken", nodes: []client.Object{node}, want: "example.com/broken" + later},
		"what every node has":         {asks: "memory", nodes: []client.Object{node}},
		"a class of devices":          {asks: "example.com/nic", nodes: []client.Object{node, class}},
		"a class by its own name":     {asks: "deviceclass.resource.kubernetes.io/nic", nodes: []client.Object{node}},
		"a cluster without any nodes": {asks: "nvidia.com/gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			asking := func(job *trainerv1alpha1.TrainJob) {
				job.Spec.Trainer = &trainerv1alpha1.Trainer{ResourcesPerNode: &corev1.ResourceRequirements{
					Limits: corev1.ResourceList{corev1.ResourceName(c.asks): resource.MustParse(cmp.Or(c.count, "2"))},
				}}
			}
			validator := newValidator(t, there(t), c.nodes...)
			got, err := validator.Create(t.Context(), trainJob(asking))
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, "", c.want)
			// The request may change so while the job is suspended, and gets the warning then.
			if got, err = validator.Update(t.Context(), trainJob(suspended), trainJob(suspended, asking)); err != nil {
				t.Fatal(err)
			}
			check(t, got, "", c.want)
			// The JobSet of a running job stays, whatever the verdict on the change.
			wished := annotated("lockstep.dev/gang", "on")
			if got, err = validator.Update(
				t.Context(),
				trainJob(asking),
				trainJob(asking, wished),
			); err != nil ||
				len(got.Warnings) > 0 {
				t.Errorf("a running job: warned of %q (%v)", got.Warnings, err)
			}
		})
	}
}

// Creating a job that lacks something warns its owner, with the remedy.
func TestCreate_WarnsWithoutACommand(t *testing.T) {
	found := there(t)
	found.found.Runtime.Spec.MLPolicy.MLPolicySource = trainerv1alpha1.MLPolicySource{
		XGBoost: &trainerv1alpha1.XGBoostMLPolicySource{},
	}
	validator := newValidator(t, found)
	job := trainJob(func(job *trainerv1alpha1.TrainJob) {
		job.Spec.Trainer = &trainerv1alpha1.Trainer{NumProcPerNode: new(int32(2))}
	})
	got, err := validator.Create(t.Context(), job)
	if err != nil || got.Refusal != nil {
		t.Fatal(err, got.Refusal)
	}
	for i, what := range []string{"one worker on each node instead of 2", "do not wait until the tracker's name is in DNS"} {
		if len(got.Warnings) != 2 || !strings.Contains(got.Warnings[i], what) ||
			!strings.Contains(got.Warnings[i], "set spec.trainer.command") {
			t.Errorf("warnings %q, want one of %s that says how to mend it", got.Warnings, what)
		}
	}
	job.Spec.Trainer.Command = []string{"train"}
	if got, err = validator.Create(t.Context(), job); err != nil || len(got.Warnings) > 0 {
		t.Errorf("warnings %q (%v) of a job with a command", got.Warnings, err)
	}
}
