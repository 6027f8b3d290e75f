package admission_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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
