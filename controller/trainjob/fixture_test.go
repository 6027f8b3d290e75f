package trainjob_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	coschedulingv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/lockstep-project/lockstep/controller"
	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/metrics"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/controller/trainjob"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// namespace is that of the fixture's jobs, system that of the controller.
const namespace, system = "team-a", "lockstep-system"

// created returns the creation time of the fixture's jobs, at which its clock starts.
func created() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) }

// fixture is a reconciler and the cluster that it sees.
type fixture struct {
	*trainjob.Reconciler
	t        *testing.T
	clock    *clocktesting.FakePassiveClock
	recorder *record.FakeRecorder
	registry *prometheus.Registry
	// writes are the kinds written, in order: "apply JobSet", "patch TrainJob status"; with a name where it is not the
	// job's, and of its frozen state not its UID.
	writes []string
	// refused is the API server's answer to an apply of an existing JobSet; nil accepts it.
	refused error
	// refuses limits refused to some contents; nil for all.
	refuses func(content map[string]any) bool
	// unstored has the API server's answer to a create or an apply of a kind; nil stores the object.
	unstored map[string]error
	// dropsGroups is an API server with JobSets without schedulingGroup.
	dropsGroups bool
}

func newFixture(t *testing.T, options plan.Options, objects ...client.Object) *fixture {
	t.Helper()
	scheme, err := controller.Scheme(cmp.Or(options.GangAPI, gangapi.Native))
	if err != nil {
		t.Fatal(err)
	}
	// The reconciler knows foreign groups by their shape only; the fake cluster must know them.
	if err = coschedulingv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	domains := plan.ComputeDomainKind()
	scheme.AddKnownTypeWithName(domains, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(domains.GroupVersion().WithKind(domains.Kind+"List"), &unstructured.UnstructuredList{})
	w := &fixture{
		t:        t,
		clock:    clocktesting.NewFakePassiveClock(created()),
		recorder: record.NewFakeRecorder(10),
		registry: prometheus.NewRegistry(),
	}
	kind := func(object runtime.Object) string {
		if known := object.GetObjectKind().GroupVersionKind().Kind; known != "" {
			return known
		}
		gvks, _, _ := scheme.ObjectKinds(object)
		return gvks[0].Kind
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithReturnManagedFields().
		WithStatusSubresource(&trainerv1alpha1.TrainJob{}, &jobsetv1alpha2.JobSet{}).
		WithIndex(&trainerv1alpha1.TrainJob{}, trainjob.RuntimeIndex, trainjob.IndexByRuntime).
		WithIndex(&schedulingv1beta1.PodGroup{}, trainjob.GroupIndex, trainjob.IndexByJob).
		WithIndex(&statev1alpha1.FrozenTrainJob{}, trainjob.FrozenIndex, trainjob.IndexFrozen).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				w.writes = append(w.writes, strings.TrimSuffix("create "+kind(o)+" "+o.GetName(), " train-uid"))
				if err := w.unstored[kind(o)]; err != nil {
					return err
				}
				return c.Create(ctx, o, opts...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				named, ok := o.(interface {
					GetKind() string
					GetName() string
				})
				if !ok {
					t.Errorf("applying a %T", o)
					return nil
				}
				var options client.ApplyOptions
				options.ApplyOptions(opts)
				verb := "apply "
				if slices.Contains(options.DryRun, metav1.DryRunAll) { // the fake cluster stores it all the same
					verb = "try "
				}
				w.writes = append(w.writes, strings.TrimSuffix(verb+named.GetKind()+" "+named.GetName(), " train"))
				if err := w.unstored[named.GetKind()]; err != nil {
					return err
				}
				content, isContent := o.(runtime.Unstructured)
				if named.GetKind() == "JobSet" && w.refused != nil && w.jobSet() != nil &&
					(w.refuses == nil || isContent && w.refuses(content.UnstructuredContent())) {
					return w.refused
				}
				if object, ok := o.(runtime.Unstructured); ok && w.dropsGroups {
					dropGroups(object.UnstructuredContent())
				}
				return c.Apply(ctx, o, opts...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if kind(o) == "Secret" { // as the shipped role does
					return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
				}
				return c.Get(ctx, key, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				w.writes = append(w.writes, "patch "+kind(o))
				return c.Patch(ctx, o, p, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				var options client.DeleteOptions
				options.ApplyOptions(opts)
				line := "delete " + kind(o) + " " + o.GetName()
				if slices.Contains(options.DryRun, metav1.DryRunAll) {
					line = "try to " + line
				}
				w.writes = append(w.writes, strings.TrimSuffix(strings.TrimSuffix(line, " train"), " train-uid"))
				if kind(o) == "Secret" {
					if err := belongs(ctx, c, client.ObjectKeyFromObject(o)); err != nil {
						return err
					}
				}
				return c.Delete(ctx, o, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
				opts ...client.SubResourcePatchOption,
			) error {
				w.writes = append(w.writes, "patch "+kind(o)+" "+sub)
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	w.Reconciler = &trainjob.Reconciler{
		Client:   cluster,
		Live:     cluster,
		Resolver: resolve.New(cluster, cluster, system),
		Recorder: w.recorder,
		Clock:    w.clock,
		Metrics:  metrics.New(w.registry),
		Options:  options,
	}
	return w
}

// belongs returns the refusal of policy belongings.lockstep.dev to let the controller delete a Secret.
func belongs(ctx context.Context, cluster client.Reader, key client.ObjectKey) error {
	var secret corev1.Secret
	if err := cluster.Get(ctx, key, &secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if owner := metav1.GetControllerOfNoCopy(&secret); owner != nil && owner.Kind == plan.TrainJobKind().Kind &&
		strings.HasPrefix(key.Name, owner.Name+"-") {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name,
		errors.New("ValidatingAdmissionPolicy 'belongings.lockstep.dev' denied request"))
}

// restart puts another process in place of the reconciler: it remembers nothing, and the cluster is unchanged.
func (w *fixture) restart() {
	w.registry = prometheus.NewRegistry()
	w.Reconciler = &trainjob.Reconciler{
		Client: w.Client, Live: w.Live, Resolver: resolve.New(w.Client, w.Live, system), Recorder: w.recorder,
		Clock: w.clock, Metrics: metrics.New(w.registry), Options: w.Options, Authority: w.Authority,
	}
}

// applies settles the job, and returns the number of applies of a kind.
func (w *fixture) applies(kind string) int {
	w.t.Helper()
	w.settle()
	count := 0
	for _, write := range w.writes {
		if strings.HasPrefix(write, "apply "+kind) {
			count++
		}
	}
	return count
}

// reconcile runs one reconciliation and returns its result; its writes are in w.writes.
func (w *fixture) reconcile() (ctrl.Result, error) {
	w.t.Helper()
	w.writes = nil
	key := types.NamespacedName{Namespace: namespace, Name: "train"}
	return w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
}

// settle reconciles and fails the test on an error.
func (w *fixture) settle() ctrl.Result {
	w.t.Helper()
	result, err := w.reconcile()
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// start reconciles until the job's JobSet is there and was seen.
func (w *fixture) start() {
	w.t.Helper()
	w.settle()
	w.settle()
}

// get reads an object of the job's name; found is false if there is none.
func (w *fixture) get(object client.Object) (found bool) {
	w.t.Helper()
	err := w.Client.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: "train"}, object)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *fixture) job() *trainerv1alpha1.TrainJob {
	w.t.Helper()
	var job trainerv1alpha1.TrainJob
	if !w.get(&job) {
		w.t.Fatal("no TrainJob")
	}
	return &job
}

func (w *fixture) jobSet() *jobsetv1alpha2.JobSet {
	w.t.Helper()
	var jobSet jobsetv1alpha2.JobSet
	if !w.get(&jobSet) {
		return nil
	}
	return &jobSet
}

func (w *fixture) podGroup() *schedulingv1beta1.PodGroup {
	w.t.Helper()
	var group schedulingv1beta1.PodGroup
	if !w.get(&group) {
		return nil
	}
	return &group
}

// change updates the job's spec as its user would.
func (w *fixture) change(edit func(*trainerv1alpha1.TrainJob)) {
	w.t.Helper()
	job := w.job()
	edit(job)
	if err := w.Client.Update(w.t.Context(), job); err != nil {
		w.t.Fatal(err)
	}
}

// say sets the JobSet's status as its controller would.
func (w *fixture) say(edit func(*jobsetv1alpha2.JobSetStatus)) {
	w.t.Helper()
	jobSet := w.jobSet()
	edit(&jobSet.Status)
	if err := w.Client.Status().Update(w.t.Context(), jobSet); err != nil {
		w.t.Fatal(err)
	}
}

// event returns the oldest event that was not yet read; empty if there is none. Most jobs of these tests begin
// suspended, and the Event about that is left out; anyEvent returns it.
func (w *fixture) event() string {
	for {
		event := w.anyEvent()
		if !strings.HasPrefix(event, "Normal Suspended ") {
			return event
		}
	}
}

func (w *fixture) anyEvent() string {
	select {
	case event := <-w.recorder.Events:
		return event
	default:
		return ""
	}
}

func (w *fixture) count(framework, result string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if labels["framework"] == framework && labels["result"] == result {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func trainJob(edits ...func(*trainerv1alpha1.TrainJob)) *trainerv1alpha1.TrainJob {
	job := &trainerv1alpha1.TrainJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "train", UID: "train-uid", CreationTimestamp: metav1.NewTime(created()),
		},
		Spec: trainerv1alpha1.TrainJobSpec{RuntimeRef: trainerv1alpha1.RuntimeRef{Name: "torch"}},
	}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func suspend(value bool) func(*trainerv1alpha1.TrainJob) {
	return func(job *trainerv1alpha1.TrainJob) { job.Spec.Suspend = new(value) }
}

func deadline(seconds int64) func(*trainerv1alpha1.TrainJob) {
	return func(job *trainerv1alpha1.TrainJob) { job.Spec.ActiveDeadlineSeconds = seconds }
}

func torch() *trainerv1alpha1.ClusterTrainingRuntime {
	return &trainerv1alpha1.ClusterTrainingRuntime{
		ObjectMeta: metav1.ObjectMeta{Name: "torch"},
		Spec:       torchSpec(),
	}
}

func torchSpec() trainerv1alpha1.TrainingRuntimeSpec {
	node := jobsetv1alpha2.ReplicatedJob{Name: "node"}
	node.Template.Labels = map[string]string{trainerv1alpha1.LabelAncestor: trainerv1alpha1.AncestorTrainer}
	node.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "node", Image: "example.com/torch:1"}}
	return trainerv1alpha1.TrainingRuntimeSpec{
		MLPolicy: &trainerv1alpha1.MLPolicy{
			NumNodes:       new(int32(2)),
			MLPolicySource: trainerv1alpha1.MLPolicySource{Torch: &trainerv1alpha1.TorchMLPolicySource{}},
		},
		Template: trainerv1alpha1.JobSetTemplateSpec{
			Spec: jobsetv1alpha2.JobSetSpec{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{node}},
		},
	}
}

func gang() plan.Options { return plan.Options{Gang: true} }
