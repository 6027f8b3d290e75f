package trainjob_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/trainjob"
)

// label puts a label on the pods of a job: its user patches the runtime.
func label(key, value string) func(*trainerv1alpha1.TrainJob) {
	return func(job *trainerv1alpha1.TrainJob) {
		pod := trainerv1alpha1.ReplicatedJobPatch{Name: "node", Template: &trainerv1alpha1.JobTemplatePatch{
			Spec: &trainerv1alpha1.JobSpecPatch{Template: &trainerv1alpha1.PodTemplatePatch{
				Metadata: &metav1.ObjectMeta{Labels: map[string]string{key: value}},
			}},
		}}
		job.Spec.RuntimePatches = []trainerv1alpha1.RuntimePatch{
			{
				Manager: "team.example/user",
				TrainingRuntimeSpec: &trainerv1alpha1.TrainingRuntimeSpecPatch{
					Template: &trainerv1alpha1.JobSetTemplatePatch{
						Spec: &trainerv1alpha1.JobSetSpecPatch{
							ReplicatedJobs: []trainerv1alpha1.ReplicatedJobPatch{pod},
						},
					},
				},
			},
		}
	}
}

// update changes the job's JobSet as a user would by hand.
func (w *fixture) update(edit func(pod *corev1.PodTemplateSpec, jobSet *jobsetv1alpha2.JobSet)) {
	w.t.Helper()
	jobSet := w.jobSet()
	edit(&jobSet.Spec.ReplicatedJobs[0].Template.Spec.Template, jobSet)
	if err := w.Client.Update(w.t.Context(), jobSet, client.FieldOwner("somebody")); err != nil {
		w.t.Fatal(err)
	}
}

// A restart writes and reads nothing for a suspended job that is unchanged.
func TestRestart_SuspendedJobCostsNoCall(t *testing.T) {
	for name, runtime := range map[string]*trainerv1alpha1.ClusterTrainingRuntime{
		"a gang": torch(), "another scheduler's": coscheduled(),
	} {
		t.Run(name, func(t *testing.T) {
			authority := "authority"
			w := newFixture(t, plan.Options{Gang: true}, runtime, trainJob(suspend(true)))
			w.reporting(&authority)
			w.settle()
			w.settle()
			w.Live = nil // a live read would panic
			w.restart()
			w.settle()
			if len(w.writes) > 0 {
				t.Errorf("a restart writes %v", w.writes)
			}
		})
	}
}

// The next controller reverts a user's manual change from the time without a controller, except in fields that an apply
// leaves.
func TestRestart_JobSetChangedByHand(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(pod *corev1.PodTemplateSpec, jobSet *jobsetv1alpha2.JobSet)
		want int
	}{
		"an image": {want: 1, edit: func(pod *corev1.PodTemplateSpec, _ *jobsetv1alpha2.JobSet) {
			pod.Spec.Containers[0].Image = "example.com/theirs:1"
		}},
		"a variable gone": {want: 1, edit: func(pod *corev1.PodTemplateSpec, _ *jobsetv1alpha2.JobSet) {
			pod.Spec.Containers[0].Env = pod.Spec.Containers[0].Env[1:]
		}},
		"a container more": {want: 1, edit: func(pod *corev1.PodTemplateSpec, _ *jobsetv1alpha2.JobSet) {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "theirs", Image: "theirs"})
		}},
		"a label gone": {want: 1, edit: func(_ *corev1.PodTemplateSpec, jobSet *jobsetv1alpha2.JobSet) {
			delete(jobSet.Labels, "team")
		}},
		// It is reverted by a patch of its own, and the rest is not applied for that.
		"its suspension": {want: 0, edit: func(_ *corev1.PodTemplateSpec, jobSet *jobsetv1alpha2.JobSet) {
			jobSet.Spec.Suspend = new(false)
		}},
		"a default": {want: 0, edit: func(_ *corev1.PodTemplateSpec, jobSet *jobsetv1alpha2.JobSet) {
			jobSet.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll}
		}},
		"a label of theirs": {want: 0, edit: func(_ *corev1.PodTemplateSpec, jobSet *jobsetv1alpha2.JobSet) {
			metav1.SetMetaDataLabel(&jobSet.ObjectMeta, "theirs", "a")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			runtime := torch()
			runtime.Spec.Template.Labels = map[string]string{"team": "a"}
			w := newFixture(t, plan.Options{}, runtime, trainJob(suspend(true)))
			w.settle()
			w.update(test.edit)
			w.restart()
			if got := w.applies("JobSet"); got != test.want {
				t.Errorf("%d applies, want %d (%v)", got, test.want, w.writes)
			}
			if !w.stopped() {
				t.Error("the JobSet of a suspended job runs")
			}
		})
	}
}

// A JobSet that another version has rendered is applied once, because it may have fields that this one does not plan.
func TestRestart_JobSetOfAnotherVersion(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob(suspend(true)))
	w.settle()
	state := w.state()
	state.Spec.Rendering.Digest = ""
	if err := w.Client.Update(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		w.restart()
		if got := w.applies("JobSet"); got != want {
			t.Errorf("%d applies, want %d (%v)", got, want, w.writes)
		}
	}
}

// A controller that dies between applying a rendering and recording it leaves a JobSet that the next one does not take
// for the recorded rendering: a change that the user has reverted meanwhile is removed.
func TestRestart_DeathBetweenApplyAndRecord(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob(suspend(true)))
	w.settle()
	w.change(label("team", "a"))
	alive := w.Client
	w.Client = dyingAfter(t, alive, 1)
	w.restart()
	if _, err := w.reconcile(); !errors.Is(err, errDied) {
		t.Fatalf("error %v, want %v (%v)", err, errDied, w.writes)
	}
	if got := w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Labels["team"]; got != "a" {
		t.Fatalf("the controller died before it applied the label: %v", w.writes)
	}
	w.change(func(job *trainerv1alpha1.TrainJob) { job.Spec.RuntimePatches = nil })
	w.Client = alive
	w.restart()
	w.settle() // deletes the JobSet, since its Jobs may have the label
	w.settle()
	if got, stays := w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Labels["team"]; stays {
		t.Errorf("label team=%s stays after %v", got, w.writes)
	}
}

var errDied = errors.New("the controller is dead")

// dyingAfter is a client of a controller that dies when it has patched frozen state so often.
func dyingAfter(t *testing.T, alive client.Client, patches int) client.Client {
	t.Helper()
	watching, ok := alive.(client.WithWatch)
	if !ok {
		t.Fatalf("a %T does not watch", alive)
	}
	return interceptor.NewClient(watching, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if _, isState := o.(*statev1alpha1.FrozenTrainJob); isState {
				if patches == 0 {
					return errDied
				}
				patches--
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
}

// The next controller reverts a user's write to a ConfigMap from the time without a controller. It reads only the
// metadata.
func TestRestart_ConfigMapChangedByHand(t *testing.T) {
	authority := "authority"
	w := newFixture(t, plan.Options{}, torch(), trainJob(suspend(true)))
	w.reporting(&authority)
	w.settle()
	w.restart()
	if got := w.applies("ConfigMap"); got != 0 {
		t.Errorf("%d applies of what is as it was left, want 0 (%v)", got, w.writes)
	}
	config := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: namespace, Name: "train-tls-config"}
	if err := w.Client.Get(t.Context(), key, config); err != nil {
		t.Fatal(err)
	}
	config.Data["ca.crt"] = "another"
	if err := w.Client.Update(t.Context(), config, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if got := w.applies("ConfigMap"); got != 1 || w.trusted() != authority {
		t.Errorf("%d applies, want 1; the pods trust %q", got, w.trusted())
	}
}

// The cache retains the managers of an object, and not their fields, which would be most of its memory.
func TestKeepManagers(t *testing.T) {
	config := &metav1.PartialObjectMetadata{}
	config.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "trainer", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 1000))}, {Manager: "somebody"},
	})
	kept, err := trainjob.KeepManagers(config)
	if err != nil {
		t.Fatal(err)
	}
	managers := kept.(metav1.Object).GetManagedFields()
	if len(managers) != 2 || managers[0].Manager != "trainer" || managers[0].FieldsV1 != nil {
		t.Errorf("managers %v", managers)
	}
}
