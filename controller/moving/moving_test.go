package moving_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimefake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/moving"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

const team = "team-a"

var errBusy = errors.New("the API server is busy")

// job runs, unless it is changed.
func job(name string, change func(*trainerv1alpha1.TrainJob)) *trainerv1alpha1.TrainJob {
	out := &trainerv1alpha1.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, UID: "job-uid"}}
	if change != nil {
		change(out)
	}
	return out
}

// group is the gang of a job of that name in the former API, with a place.
func group(name string) *schedulingv1beta1.PodGroup {
	out := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: team, Name: name, UID: "group-uid", Finalizers: []string{gangapi.Finalizer, "example.com/kept"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job(name, nil), plan.TrainJobKind())},
	}}
	out.Status.Conditions = []metav1.Condition{
		{Type: "lockstep.dev/Placed", Status: metav1.ConditionTrue, Reason: "Placed"},
	}
	return out
}

// mover moves from one fake API to another.
func mover(
	t *testing.T,
	groups []runtime.Object,
	jobs ...client.Object,
) (moving.Mover, *fake.Clientset, *fake.Clientset) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := trainerv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	former, now := fake.NewClientset(groups...), fake.NewClientset()
	return moving.Mover{
		Old: former, New: now, To: gangapi.Native,
		Jobs:  runtimefake.NewClientBuilder().WithScheme(scheme).WithObjects(jobs...).Build(),
		Clock: clocktesting.NewFakeClock(metav1.Now().Time),
	}, former, now
}

// in returns a group in an API, nil if it is not there.
func in(t *testing.T, api *fake.Clientset, name string) *schedulingv1beta1.PodGroup {
	t.Helper()
	out, err := api.SchedulingV1beta1().PodGroups(team).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The copy has the place that the gang had, and the original stays: claims that it owns would go with it.
func TestStep_CopiesGangsThatRun(t *testing.T) {
	m, former, now := mover(t, []runtime.Object{group("train")}, job("train", nil))
	for range 2 { // the second finds the copy
		if left, err := m.Step(t.Context()); left != 1 || err != nil {
			t.Fatalf("%d are left, %v", left, err)
		}
	}
	moved := in(t, now, "train")
	if moved == nil || len(moved.Status.Conditions) != 1 || moved.Status.Conditions[0].Status != metav1.ConditionTrue {
		t.Fatalf("the copy is %+v", moved)
	}
	if stays := in(t, former, "train"); stays == nil || !slices.Contains(stays.Finalizers, gangapi.Finalizer) {
		t.Errorf("the original is %+v", stays)
	}
}

// The reconciler may have created the group already, without a status.
func TestStep_GivesItsStatusToACopyWithout(t *testing.T) {
	m, _, now := mover(t, []runtime.Object{group("train")}, job("train", nil))
	early := group("train")
	early.Status = schedulingv1beta1.PodGroupStatus{}
	if _, err := now.SchedulingV1beta1().
		PodGroups(team).
		Create(t.Context(), early, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := in(t, now, "train").Status.Conditions; len(got) != 1 {
		t.Errorf("its conditions are %v", got)
	}
}

// Groups without pods that start or run are removed, and only our finalizer is taken off.
func TestStep_RemovesGangsThatAreNotNeeded(t *testing.T) {
	for name, jobs := range map[string][]client.Object{
		"no job":          nil,
		"an earlier job":  {job("train", func(j *trainerv1alpha1.TrainJob) { j.UID = "later-uid" })},
		"a suspended job": {job("train", func(j *trainerv1alpha1.TrainJob) { j.Spec.Suspend = new(true) })},
		"a job that ended": {job("train", func(j *trainerv1alpha1.TrainJob) {
			j.Status.Conditions = []metav1.Condition{{Type: trainerv1alpha1.TrainJobComplete, Status: metav1.ConditionTrue}}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			m, former, now := mover(t, []runtime.Object{group("train")}, jobs...)
			left, err := m.Step(t.Context())
			if left != 0 || err != nil {
				t.Fatalf("%d are left, %v", left, err)
			}
			if in(t, former, "train") != nil || in(t, now, "train") != nil {
				t.Error("the group is still there, or was copied")
			}
			for _, a := range former.Actions() {
				patch, isPatch := a.(clienttesting.PatchAction)
				if want := `{"metadata":{"finalizers":["example.com/kept"],"resourceVersion":"","uid":"group-uid"}}`; isPatch &&
					string(patch.GetPatch()) != want {
					t.Errorf("patched %s, want %s", patch.GetPatch(), want)
				}
			}
		})
	}
}

// Gangs of other controllers move by themselves.
func TestStep_LeavesOtherGangsAlone(t *testing.T) {
	other := group("other")
	other.OwnerReferences[0].Kind = "Workload"
	m, former, now := mover(t, []runtime.Object{other})
	if left, err := m.Step(t.Context()); left != 0 || err != nil {
		t.Fatalf("%d are left, %v", left, err)
	}
	if in(t, former, "other") == nil || in(t, now, "other") != nil {
		t.Error("it was moved")
	}
}

// refusing answers a verb for groups of one name with 403, as an admission policy does.
func refusing(api *fake.Clientset, verb, name string) {
	api.PrependReactor(verb, "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
		at := ""
		switch asked := action.(type) {
		case clienttesting.CreateAction:
			at = asked.GetObject().(metav1.Object).GetName()
		case clienttesting.PatchAction:
			at = asked.GetName()
		}
		if at != name {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "podgroups"}, name, errBusy)
	})
}

// A group that a quota or a policy refuses is left, and the groups behind it are moved.
func TestStep_ContinuesBehindARefusedGroup(t *testing.T) {
	for verb, jobs := range map[string][]client.Object{
		"create": {job("a", nil), job("b", nil)},
		"patch":  {job("b", nil)}, // the first is to be removed
	} {
		t.Run(verb, func(t *testing.T) {
			m, former, now := mover(t, []runtime.Object{group("a"), group("b")}, jobs...)
			refusing(former, verb, "a")
			refusing(now, verb, "a")
			left, err := m.Step(t.Context())
			if left != 2 || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), team+"/a") {
				t.Errorf("%d are left, %v", left, err)
			}
			if in(t, now, "b") == nil {
				t.Error("the group behind it was not moved")
			}
		})
	}
}

// A namespace whose groups the controller may not list does not keep the groups of the others from moving.
func TestStep_ContinuesBehindAForbiddenNamespace(t *testing.T) {
	m, former, now := mover(t, []runtime.Object{group("train")}, job("train", nil))
	m.Namespaces = []string{"closed", team}
	former.PrependReactor("list", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "podgroups"}, "", errBusy)
		return action.GetNamespace() == "closed", nil, err
	})
	if left, err := m.Step(t.Context()); left != 1 || !apierrors.IsForbidden(err) {
		t.Errorf("%d are left, %v", left, err)
	}
	if in(t, now, "train") == nil {
		t.Error("the group was not moved")
	}
}

// A refused write is not a missing right to look: Start tries again, and ends when the group has moved.
func TestStart_TriesARefusedGroupAgain(t *testing.T) {
	m, former, now := mover(t, []runtime.Object{group("train")})
	clock := clocktesting.NewFakeClock(metav1.Now().Time)
	m.Clock = clock
	refused := 0
	former.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		refused++
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "podgroups"}, "train", errBusy)
		return refused == 1, nil, err
	})
	ended := make(chan error, 1)
	go func() { ended <- m.Start(t.Context()) }()
	for done := false; !done; {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			done = true
		default:
			clock.Step(20 * time.Second)
		}
	}
	if in(t, former, "train") != nil || in(t, now, "train") != nil {
		t.Error("it ended before the group was removed")
	}
}

// Start ends when nothing is left, when it may not look, and with its context; a fault is none of these.
func TestStart_Ends(t *testing.T) {
	groups := schema.GroupResource{Resource: "podgroups"}
	for name, answer := range map[string]error{
		"nothing is left":   nil,
		"no such API":       apierrors.NewNotFound(groups, ""),
		"no right to look":  apierrors.NewForbidden(groups, "", errBusy),
		"and when ctx does": errBusy,
	} {
		t.Run(name, func(t *testing.T) {
			m, former, _ := mover(t, nil)
			if answer != nil {
				former.PrependReactor(
					"list",
					"podgroups",
					func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, answer },
				)
			}
			ended := make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			go func() { ended <- m.Start(ctx) }()
			if errors.Is(answer, errBusy) {
				stop()
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			stop()
		})
	}
}
