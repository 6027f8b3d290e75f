package admission_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/lockstep-project/lockstep/controller/admission"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// besideTrainer is the defaulter of a controller beside Kubeflow Trainer, in a cluster with a namespace "chosen" and a
// namespace "other".
func besideTrainer(t *testing.T, runtimes admission.Runtimes, lost error) *admission.Defaulter {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	chosen := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "chosen", Labels: map[string]string{trainerv1alpha1.LabelTrainer: trainerv1alpha1.TrainerLockstep},
	}}
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	cluster := fake.NewClientBuilder().
		WithScheme(scheme).
		WithObjects(chosen, other).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if lost != nil {
					return lost
				}
				return c.Get(ctx, k, o, opts...)
			},
		}).
		Build()
	return &admission.Defaulter{
		Class: class.Class{
			Choice: class.Chosen,
		},
		Runtimes: runtimes,
		Live:     cluster,
		Clock:    clocktesting.NewFakePassiveClock(now()),
	}
}

// runtimeOf finds a runtime with this value of the label that chooses the controller; an empty value is no label.
func runtimeOf(value string) finds {
	rt := &trainerv1alpha1.ClusterTrainingRuntime{}
	if value != "" {
		rt.Labels = map[string]string{trainerv1alpha1.LabelTrainer: value}
	}
	return finds{found: resolve.Found{Live: rt}}
}

// sent is a TrainJob as the API server hands it to the webhook: with the CRD's default of managedBy, and a field that
// we do not know.
func sent(manager string) []byte {
	return fmt.Appendf(
		nil,
		`{"kind":"TrainJob","metadata":{"name":"train"},"spec":{"managedBy":%q,"runtimeRef":{"name":"rt"},`+
			`"runtimePatches":[{"manager":"a.example/b"}],"young":1}}`,
		manager,
	)
}

// Beside Kubeflow Trainer, a new job of a chosen namespace or runtime becomes Lockstep's; every other is stored as it
// was sent.
func TestDefaulter_ChoosesNewJobs(t *testing.T) {
	const trainer, multikueue = trainerv1alpha1.DefaultManagedBy, "kueue.x-k8s.io/multikueue"
	for name, c := range map[string]struct {
		namespace string
		runtimes  admission.Runtimes
		manager   string
		old       bool
		// want is the managedBy that is stored; empty if nothing may change.
		want string
	}{
		"of a chosen namespace":              {namespace: "chosen", manager: trainer, want: trainerv1alpha1.LockstepManagedBy},
		"of another namespace":               {namespace: "other", manager: trainer},
		"of a chosen runtime":                {namespace: "other", runtimes: runtimeOf("lockstep"), manager: trainer, want: trainerv1alpha1.LockstepManagedBy},
		"of another runtime":                 {namespace: "chosen", runtimes: runtimeOf("kubeflow"), manager: trainer},
		"without its runtime":                {namespace: "other", runtimes: missing(), manager: trainer},
		"of another cluster":                 {namespace: "chosen", manager: multikueue},
		"that names Lockstep itself":         {namespace: "other", manager: trainerv1alpha1.LockstepManagedBy, want: trainerv1alpha1.LockstepManagedBy},
		"that Kubeflow Trainer has already":  {namespace: "chosen", manager: trainer, old: true},
		"that Lockstep has already, changed": {namespace: "other", manager: trainerv1alpha1.LockstepManagedBy, old: true, want: trainerv1alpha1.LockstepManagedBy},
	} {
		t.Run(name, func(t *testing.T) {
			if c.runtimes == nil {
				c.runtimes = runtimeOf("")
			}
			next := sent(c.manager)
			var old []byte
			if c.old {
				old = sent(c.manager)
			}
			got, err := besideTrainer(
				t,
				c.runtimes,
				nil,
			).Default(t.Context(), admission.Change{Namespace: c.namespace, Old: old, Next: next})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if string(got) != string(next) {
					t.Errorf("it was changed to %s", got)
				}
				return
			}
			want, err := admission.Default(old, sent(c.want), now())
			if err != nil || string(got) != string(want) {
				t.Errorf("got  %s\nwant %s (%v)", got, want, err)
			}
		})
	}
}

// A failed read fails the request: the job must not become another controller's by accident.
func TestDefaulter_LabelsThatCannotBeRead(t *testing.T) {
	lost := errors.New("lost")
	for name, d := range map[string]*admission.Defaulter{
		"the namespace": besideTrainer(t, runtimeOf(""), lost),
		"the runtime":   besideTrainer(t, finds{err: lost}, nil),
	} {
		_, err := d.Default(
			t.Context(),
			admission.Change{Namespace: "chosen", Next: sent(trainerv1alpha1.DefaultManagedBy)},
		)
		if !errors.Is(err, lost) || errors.Is(err, admission.ErrMalformed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Beside Kubeflow Trainer, its jobs are not judged.
func TestValidator_LeavesOthersJobsToTheirController(t *testing.T) {
	validator := newValidator(t, missing())
	validator.Class.Choice = class.Chosen
	for manager, refused := range map[string]bool{trainerv1alpha1.DefaultManagedBy: false, trainerv1alpha1.LockstepManagedBy: true} {
		job := trainJob(func(job *trainerv1alpha1.TrainJob) { job.Spec.ManagedBy = new(manager) })
		verdict, err := validator.Judge(t.Context(), nil, job)
		if err != nil || (verdict.Refusal != nil) != refused {
			t.Errorf("managedBy %s: %v, %v", manager, verdict.Refusal, err)
		}
	}
}

// Beside Kubeflow Trainer, runtimes are judged that choose Lockstep. Kubeflow Trainer judges the objects that only it
// uses.
func TestWebhooks_LeaveOthersRuntimesToTheirController(t *testing.T) {
	const replicated = `"spec":{"template":{"spec":{"replicatedJobs":[{"name":"node","replicas":2,"template":{"metadata":` +
		`{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},"spec":{"template":{"spec":{"containers":[{"name":"node"}]}}}}}]}}}`
	server := webhook.NewServer(webhook.Options{})
	validator := newValidator(t, missing())
	validator.Class.Choice = class.Chosen
	admission.Register(
		server,
		validator,
		&admission.Defaulter{Class: validator.Class, Clock: clocktesting.NewFakePassiveClock(now())},
	)
	for _, path := range []string{admission.ValidateRuntimePath, admission.ValidateClusterRuntimePath} {
		for labels, refused := range map[string]bool{`{}`: false, `{"lockstep.dev/trainer":"lockstep"}`: true, `{"lockstep.dev/trainer":"kubeflow"}`: false} {
			got := send(t, server, path, &admissionv1.AdmissionRequest{
				Operation: admissionv1.Create,
				Object: runtime.RawExtension{
					Raw: []byte(`{"metadata":{"name":"rt","labels":` + labels + `},` + replicated + `}`),
				},
			})
			if got.Allowed == refused {
				t.Errorf("%s with labels %s: allowed %t, %v", path, labels, got.Allowed, got.Result)
			}
		}
	}
}
