package admission_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/admission"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/nodefit"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/plan/cases"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

const deprecated = `ClusterTrainingRuntime "rt" is deprecated and will be removed in a future release of Kubeflow ` +
	`Trainer. See runtime deprecation policy: https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html` +
	`#runtime-deprecation-policy`

// finds answers every job alike.
type finds struct {
	found resolve.Found
	err   error
}

func (f finds) Current(ctx context.Context, job *trainerv1alpha1.TrainJob) (resolve.Found, error) {
	return f.Find(ctx, job)
}

func (f finds) Find(context.Context, *trainerv1alpha1.TrainJob) (resolve.Found, error) {
	if f.err != nil {
		return resolve.Found{}, f.err
	}
	return f.found, nil
}

// missing returns the report of a runtime that does not exist.
func missing() finds { return finds{err: fmt.Errorf("runtime rt: %w", resolve.ErrMissing)} }

// there is the runtime of the planner's golden cases about patches.
func there(t *testing.T) finds {
	t.Helper()
	c, err := cases.Read("../plan/testdata", "torch-patches")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := c.Text(cases.Runtime)
	var rt trainerv1alpha1.ClusterTrainingRuntime
	if err := yaml.UnmarshalStrict([]byte(text), &rt); err != nil {
		t.Fatal(err)
	}
	return finds{found: resolve.Found{Runtime: plan.Runtime{Kind: rt.Kind, Name: rt.Name, Spec: rt.Spec}}}
}

// annotating is there's runtime with an annotation.
func annotating(t *testing.T, key, value string) finds {
	t.Helper()
	out := there(t)
	out.found.Runtime.Annotations = map[string]string{key: value}
	return out
}

func newValidator(t *testing.T, runtimes admission.Runtimes, objects ...client.Object) *admission.Validator {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		jobsetv1alpha2.AddToScheme, schedulingv1.AddToScheme, corev1.AddToScheme, resourcev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &admission.Validator{
		Runtimes: runtimes,
		JobSets:  cluster,
		Live:     cluster,
		Nodes:    nodefit.Nodes{Cache: cluster, Live: cluster},
	}
}

// trainJob is a job that there's runtime renders.
func trainJob(changes ...func(*trainerv1alpha1.TrainJob)) *trainerv1alpha1.TrainJob {
	job := &trainerv1alpha1.TrainJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train"},
		Spec: trainerv1alpha1.TrainJobSpec{
			RuntimeRef: trainerv1alpha1.RuntimeRef{Name: "rt", Kind: new("ClusterTrainingRuntime")},
		},
	}
	for _, change := range changes {
		change(job)
	}
	return job
}

type change = func(*trainerv1alpha1.TrainJob)

func suspended(job *trainerv1alpha1.TrainJob) { job.Spec.Suspend = new(true) }
func running(job *trainerv1alpha1.TrainJob)   { job.Spec.Suspend = new(false) }
func labeled(job *trainerv1alpha1.TrainJob)   { job.Labels = map[string]string{"a": "b"} }
func deleting(job *trainerv1alpha1.TrainJob)  { job.DeletionTimestamp = &metav1.Time{Time: now()} }
func noNodes(job *trainerv1alpha1.TrainJob)   { nodes(0)(job) }

func nodes(n int32) change {
	return func(job *trainerv1alpha1.TrainJob) { job.Spec.Trainer = &trainerv1alpha1.Trainer{NumNodes: new(n)} }
}

func queued(job *trainerv1alpha1.TrainJob) {
	job.Labels = map[string]string{plan.KueueQueueLabel: "research"}
}

func claiming(job *trainerv1alpha1.TrainJob) {
	job.Spec.Trainer = &trainerv1alpha1.Trainer{ResourceClaimsPerNode: []trainerv1alpha1.ResourceClaimPerNode{
		{Name: "gpus", ResourceClaimTemplateName: new("four")},
	}}
}

func called(name string) change {
	return func(job *trainerv1alpha1.TrainJob) { job.Name = name }
}

func annotated(key, value string) change {
	return func(job *trainerv1alpha1.TrainJob) { job.Annotations = map[string]string{key: value} }
}

func refersTo(kind string) change {
	return func(job *trainerv1alpha1.TrainJob) { job.Spec.RuntimeRef.Kind = new(kind) }
}

// prioritizedBy adds a manager's patch that names a priority class.
func prioritizedBy(manager, class string) change {
	return func(job *trainerv1alpha1.TrainJob) {
		job.Spec.RuntimePatches = append(job.Spec.RuntimePatches, trainerv1alpha1.RuntimePatch{
			Manager: manager,
			TrainingRuntimeSpec: &trainerv1alpha1.TrainingRuntimeSpecPatch{
				Template: &trainerv1alpha1.JobSetTemplatePatch{
					Metadata: &metav1.ObjectMeta{Annotations: map[string]string{"lockstep.dev/priority-class": class}},
				},
			},
		})
	}
}

// patchedBy adds a manager's patch for a ReplicatedJob.
func patchedBy(manager, replicatedJob string) change {
	return func(job *trainerv1alpha1.TrainJob) {
		job.Spec.RuntimePatches = append(job.Spec.RuntimePatches, trainerv1alpha1.RuntimePatch{
			Manager: manager,
			TrainingRuntimeSpec: &trainerv1alpha1.TrainingRuntimeSpecPatch{
				Template: &trainerv1alpha1.JobSetTemplatePatch{Spec: &trainerv1alpha1.JobSetSpecPatch{
					ReplicatedJobs: []trainerv1alpha1.ReplicatedJobPatch{{Name: replicatedJob}},
				}},
			},
		})
	}
}

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

// Volcano would leave a group with a class that does not exist pending.
func TestPriorityClass_OfVolcanoGroupMustExist(t *testing.T) {
	for name, c := range map[string]struct{ class, exists, want string }{
		"none":                   {},
		"one that is":            {class: "high", exists: "high"},
		"one of Kubernetes' own": {class: "system-node-critical"},
		"one that is not": {class: "high", want: `spec.templateSpec.priorityClassName: Invalid value: "high": ` +
			`PriorityClass "high" doesn't exist: priorityclasses.scheduling.k8s.io "high" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			found := there(t)
			found.found.Runtime.Spec.PodGroupPolicy = &trainerv1alpha1.PodGroupPolicy{
				PodGroupPolicySource: trainerv1alpha1.PodGroupPolicySource{
					Volcano: &trainerv1alpha1.VolcanoPodGroupPolicySource{},
				},
			}
			found.found.Runtime.Spec.Template.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.PriorityClassName = c.class
			got, err := newValidator(t, found, classOf(cmp.Or(c.exists, "other"))).Create(t.Context(), trainJob())
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, c.want, "")
		})
	}
}

func classOf(name string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// A job names a class that exists, and none of those that Kubernetes and Lockstep reserve.
func TestPriorityClass_OfJobMustExist(t *testing.T) {
	const at = "metadata.annotations[lockstep.dev/priority-class]: Invalid value: "
	const must = "must be the name of a PriorityClass that is not lockstep and does not start with system-"
	for name, want := range map[string]string{
		"high":                 "",
		"low":                  at + `"low": PriorityClass "low" doesn't exist: priorityclasses.scheduling.k8s.io "low" not found`,
		"system-node-critical": at + `"system-node-critical": ` + must,
		"No class":             at + `"No class": ` + must,
		plan.OwnPriorityClass:  at + `"lockstep": ` + must,
	} {
		job := trainJob(annotated("lockstep.dev/priority-class", name))
		got, err := newValidator(t, there(t), classOf("high"), classOf("lockstep")).Create(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		check(t, got, want, "")
	}
}

func TestValidator_Update(t *testing.T) {
	const forbidden = "spec.runtimePatches: Forbidden: RuntimePatches can"
	const never = forbidden + " only be modified when the TrainJob is suspended before or after the update"
	const wasMissing = `spec.runtimeRef: Invalid value: "rt": runtime rt: the runtime does not exist: ` +
		`specified clusterTrainingRuntime must be created before the TrainJob is created`
	active := &jobsetv1alpha2.JobSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train"},
		Status: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{
			{Name: "first", Ready: 1}, {Name: "node", Active: 1},
		}},
	}
	for name, c := range map[string]struct {
		runtimes  admission.Runtimes
		jobSet    client.Object
		old, next []change
		want      string
	}{
		"nothing changes and the runtime is gone": {runtimes: missing()},
		"suspension with the runtime gone":        {runtimes: missing(), old: []change{running}, next: []change{suspended}},
		"a label of a job at fault":               {runtimes: there(t), old: []change{noNodes}, next: []change{noNodes, labeled}},
		"a job being deleted": {
			runtimes: missing(), old: []change{deleting}, next: []change{deleting, noNodes},
		},
		"a change of the spec with the runtime gone": {
			runtimes: missing(), old: []change{suspended}, next: []change{suspended, patchedBy("a.io/b", "node")}, want: wasMissing,
		},
		"a change that brings a fault": {
			runtimes: there(t), next: []change{noNodes}, want: "spec.trainer.numNodes: Invalid value: 0: must be at least 1",
		},
		"Kueue clears its patch of a job at fault": {
			runtimes: there(t), next: []change{noNodes, suspended},
			old: []change{noNodes, suspended, patchedBy("kueue.x-k8s.io/manager", "node")},
		},
		"an annotation of ours that does not exist": {
			runtimes: there(t), old: []change{running}, next: []change{running, annotated("lockstep.dev/gnag", "on")},
			want: "metadata.annotations[lockstep.dev/gnag]: Invalid value: \"on\": there is no such annotation; there are ",
		},
		"an annotation of ours with a value that is none": {
			runtimes: there(t), next: []change{annotated("lockstep.dev/gang", "yes")},
			want: `metadata.annotations[lockstep.dev/gang]: Invalid value: "yes": must be one of on, off`,
		},
		"an annotation of ours with the runtime gone": {
			runtimes: missing(), next: []change{annotated("lockstep.dev/gang", "yes")},
		},
		"a queue of Kueue's for a job with claims": {
			runtimes: there(t), old: []change{claiming}, next: []change{claiming, queued},
			want: "spec.trainer.resourceClaimsPerNode: Invalid value: \"gpus\": the job is queued by Kueue " +
				"(label kueue.x-k8s.io/queue-name is research), which does not know the field and would count no devices; put the " +
				"claims into the pods of a runtime, or ask for the extended resource of their class in resourcesPerNode",
		},
		"somebody else's annotation": {runtimes: missing(), next: []change{annotated("acme.io/a", "b")}},
		"a patch for a running job": {
			runtimes: there(t), old: []change{running}, next: []change{running, patchedBy("a.io/b", "node")}, want: never,
		},
		"a patch for a job that says nothing of suspension": {
			runtimes: there(t), next: []change{patchedBy("a.io/b", "node")}, want: never,
		},
		"a patch and the start in one, as Kueue does": {
			runtimes: there(t), old: []change{suspended}, next: []change{running, patchedBy("a.io/b", "node")},
		},
		"a patch and suspension in one": {
			runtimes: there(t), old: []change{running}, next: []change{suspended, patchedBy("a.io/b", "node")},
		},
		"a patch for a suspended job whose pods still run": {
			runtimes: there(t), jobSet: active, old: []change{suspended},
			next: []change{suspended, patchedBy("a.io/b", "node")},
			want: forbidden + "not be modified when the JobSet's ReplicatedJob node is still active",
		},
		"suspension of a job whose pods run": {
			runtimes: there(t), jobSet: active, old: []change{running, patchedBy("a.io/b", "node")},
			next: []change{suspended, patchedBy("a.io/b", "node")},
		},
		"a size for a running job": {
			runtimes: there(t), old: []change{running, nodes(2)}, next: []change{running, nodes(4)},
			want: "spec.trainer: Forbidden: numNodes and resourcesPerNode can only be modified when the TrainJob is suspended before or after the update",
		},
		"a size for a suspended job whose pods still run": {
			runtimes: there(t), jobSet: active, old: []change{suspended, nodes(2)}, next: []change{suspended, nodes(4)},
			want: "spec.trainer: Forbidden: numNodes and resourcesPerNode cannot be modified when the JobSet's ReplicatedJob node is still active",
		},
		"another priority for a suspended job": {
			runtimes: there(t), jobSet: classOf("high"), old: []change{suspended},
			next: []change{suspended, annotated("lockstep.dev/priority-class", "high")},
		},
		"another priority for a running job": {
			runtimes: there(t), jobSet: classOf("high"), old: []change{running},
			next: []change{running, annotated("lockstep.dev/priority-class", "high")},
			want: "metadata.annotations[lockstep.dev/priority-class]: Forbidden: The priority class can only be modified when the TrainJob " +
				"is suspended before or after the update",
		},
		"a priority that does not exist": {
			runtimes: there(t), old: []change{suspended}, next: []change{suspended, annotated("lockstep.dev/priority-class", "high")},
			want: `metadata.annotations[lockstep.dev/priority-class]: Invalid value: "high": PriorityClass "high" doesn't exist: ` +
				`priorityclasses.scheduling.k8s.io "high" not found`,
		},
		"a priority of a patch that does not exist": {
			runtimes: there(t), old: []change{suspended}, next: []change{suspended, prioritizedBy("a.io/b", "high")},
			want: `metadata.annotations[lockstep.dev/priority-class]: Invalid value: "high": PriorityClass "high" doesn't exist: ` +
				`priorityclasses.scheduling.k8s.io "high" not found`,
		},
		"a priority of a patch that exists": {
			runtimes: there(t), jobSet: classOf("high"), old: []change{suspended},
			next: []change{suspended, prioritizedBy("a.io/b", "high")},
		},
		"a running job names the priority that its runtime names": {
			runtimes: annotating(t, "lockstep.dev/priority-class", "high"), old: []change{running},
			next: []change{running, annotated("lockstep.dev/priority-class", "high")},
		},
		"a running job leaves its priority to its runtime": {
			runtimes: annotating(t, "lockstep.dev/priority-class", "high"), jobSet: classOf("high"),
			old: []change{running, annotated("lockstep.dev/priority-class", "")}, next: []change{running},
			want: "metadata.annotations[lockstep.dev/priority-class]: Forbidden: The priority class can only be modified when the TrainJob " +
				"is suspended before or after the update",
		},
		"another priority for a running job with the runtime gone": {
			runtimes: missing(), old: []change{running},
			next: []change{running, annotated("lockstep.dev/priority-class", "high")},
			want: "metadata.annotations[lockstep.dev/priority-class]: Forbidden: The priority class can only be modified when the TrainJob " +
				"is suspended before or after the update",
		},
		"a size for a suspended job": {runtimes: there(t), old: []change{suspended, nodes(2)}, next: []change{suspended, nodes(4)}},
		"a size with a fault": {
			runtimes: there(t), old: []change{suspended, nodes(2)}, next: []change{suspended, noNodes},
			want: "spec.trainer.numNodes: Invalid value: 0: must be at least 1",
		},
		"a patch with a fault": {
			runtimes: there(t), old: []change{suspended}, next: []change{suspended, patchedBy("a.io/b", "other")},
			want: "spec.runtimePatches: Invalid value: \"other\": must not have replicated job that doesn't exist in the " +
				"runtime job template",
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			var objects []client.Object
			if c.jobSet != nil {
				objects = append(objects, c.jobSet)
			}
			got, err := newValidator(
				t,
				c.runtimes,
				objects...).Update(t.Context(), trainJob(c.old...), trainJob(c.next...))
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, c.want, "")
		})
	}
}

func TestValidator_LookupFaultIsReturned(t *testing.T) {
	lost := errors.New("connection lost")
	validator := newValidator(t, finds{err: lost})
	if _, err := validator.Create(t.Context(), trainJob()); !errors.Is(err, lost) {
		t.Errorf("creation: %v, want that the connection was lost", err)
	}
	if _, err := validator.Update(t.Context(), trainJob(), trainJob(noNodes)); !errors.Is(err, lost) {
		t.Errorf("an update: %v, want that the connection was lost", err)
	}
	if _, err := validator.Update(t.Context(), trainJob(running), trainJob(suspended)); err != nil {
		t.Errorf("suspension: %v, want none", err)
	}
	validator = newValidator(t, there(t))
	validator.JobSets = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return lost
		},
	})
	got, err := validator.Update(t.Context(), trainJob(suspended), trainJob(suspended, patchedBy("a.io/b", "node")))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, "spec.runtimePatches: Internal error: getting JobSet train: connection lost", "")
}

// check compares a verdict. A wanted refusal that ends in a blank is a prefix.
func check(t *testing.T, got admission.Verdict, want, warnings string) {
	t.Helper()
	refusal := ""
	if got.Refusal != nil {
		refusal = got.Refusal.Error()
	}
	if refusal != want && (!strings.HasSuffix(want, " ") || !strings.HasPrefix(refusal, want)) {
		t.Errorf("refused\n%s, want\n%s", refusal, want)
	}
	if wanted := strings.FieldsFunc(
		warnings,
		func(r rune) bool { return r == '\n' },
	); !slices.Equal(
		got.Warnings,
		wanted,
	) {
		t.Errorf("warnings %q, want %q", got.Warnings, wanted)
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
