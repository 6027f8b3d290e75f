package podgroups_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/podgroups"
)

// refuses has the API server answer the first patches of groups with errors. It returns the number of patches.
func (w *fakeCluster) refuses(answers ...error) *atomic.Int32 {
	var patches atomic.Int32
	w.client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		if n := int(patches.Add(1)); n <= len(answers) {
			return true, nil, answers[n-1]
		}
		return false, nil, nil
	})
	return &patches
}

// A refused write is tried again, whatever the refusal, and the group gets finalizer and priority in one write.
func TestKeeper_TriesAgain(t *testing.T) {
	resource := gangapi.Resources.Resource().GroupResource()
	for name, refusal := range map[string]error{
		"a conflict":                     apierrors.NewConflict(resource, "gang", nil),
		"a policy that is not there yet": apierrors.NewForbidden(resource, "gang", nil),
		"a busy server":                  apierrors.NewTooManyRequests("busy", 1),
	} {
		w := newFakeCluster(t, gangapi.Resources, true, member("rank-0", 7))
		patches := w.refuses(refusal, refusal)
		w.create()
		w.becomes(name, func(group *schedulingv1beta1.PodGroup) bool {
			return isProtected(group) && group.Spec.Priority != nil && *group.Spec.Priority == 7
		})
		if got := patches.Load(); got != 3 {
			t.Errorf("%s: %d patches, want two that are refused and one", name, got)
		}
	}
}

// A group that is deleted before it is written to is left alone.
func TestKeeper_GivesUpAGroupThatIsGone(t *testing.T) {
	resource := gangapi.Resources.Resource().GroupResource()
	w := newFakeCluster(t, gangapi.Resources, true, member("rank-0", 7))
	patches := w.refuses(apierrors.NewNotFound(resource, "gang"))
	w.create()
	for range 500 {
		if patches.Load() > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(150 * time.Millisecond)
	if got := patches.Load(); got != 1 {
		t.Errorf("%d patches, want one", got)
	}
}

// The keeper replaces the finalizers that it has seen. One that is added meanwhile, such as the garbage collector's,
// stays.
func TestKeeper_KeepsFinalizersOfOthers(t *testing.T) {
	w := newFakeCluster(t, gangapi.Resources, true, member("rank-0", 0))
	raced := false
	w.client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		if !raced { // between the keeper's look and its write
			raced = true
			group := gang()
			group.Finalizers = []string{metav1.FinalizerDeleteDependents}
			if err := w.client.Tracker().Update(gangapi.Native.Resource(), group, "team-a"); err != nil {
				t.Error(err)
			}
		}
		return false, nil, nil
	})
	w.create()
	w.becomes("the group", isProtected)
	if got := w.group().Finalizers; len(got) != 2 || got[0] != metav1.FinalizerDeleteDependents {
		t.Errorf("the finalizers are %v", got)
	}
}

// A standby replica acts on all that it has seen once it leads: finalizers are removed, too, and nothing was written
// before.
func TestKeeper_CatchesUpWhenItLeads(t *testing.T) {
	w := newFakeCluster(t, gangapi.Resources, false, gang(protected, deleted), member("rank-0", 0))
	patches := w.refuses()
	if err := w.client.CoreV1().Pods("team-a").Delete(t.Context(), "rank-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.stays("standing by")
	if got := patches.Load(); got != 0 {
		t.Errorf("a standby replica wrote %d times", got)
	}
	w.leads.Store(true)
	w.becomes("leading", func(group *schedulingv1beta1.PodGroup) bool { return !isProtected(group) })
}

// A group retains the priority that it has. Pods without one, or with 0, need none; the finalizer they need.
func TestKeeper_StampsAPriorityOnce(t *testing.T) {
	three := func(group *schedulingv1beta1.PodGroup) { group.Spec.Priority = new(int32(3)) }
	without := member("rank-0", 0)
	without.Spec.Priority = nil
	for name, c := range map[string]struct {
		group *schedulingv1beta1.PodGroup
		pod   *corev1.Pod
		want  *int32
	}{
		"a group with another priority": {gang(three), member("rank-0", 7), new(int32(3))},
		"a negative priority":           {gang(), member("rank-0", -7), new(int32(-7))},
		"priority 0":                    {gang(), member("rank-0", 0), nil},
		"no priority":                   {gang(), without, nil},
	} {
		w := newFakeCluster(t, gangapi.Resources, true, c.group, c.pod)
		w.becomes(name, isProtected)
		w.stays(name)
		got := w.group().Spec.Priority
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: the priority is %v, want %v", name, got, c.want)
		}
	}
}

// Pods of other groups, other namespaces and no group keep no group.
func TestKeeper_CountsTheGroupsOwnPods(t *testing.T) {
	elsewhere, other, single := member("elsewhere", 0), member("other", 0), member("single", 0)
	elsewhere.Namespace = "team-b"
	other.Spec.SchedulingGroup.PodGroupName = new("other")
	single.Spec.SchedulingGroup = nil
	w := newFakeCluster(
		t,
		gangapi.Resources,
		true,
		gang(protected, deleted),
		elsewhere,
		other,
		single,
		member("own", 0),
	)
	w.stays("with a pod of its own")
	if err := w.client.CoreV1().Pods("team-a").Delete(t.Context(), "own", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes("with pods of others only", func(group *schedulingv1beta1.PodGroup) bool { return !isProtected(group) })
}

// The scheduler's informer shows no pod that has ended, so such a pod retains no group. The keeper itself looks at no
// phase: with an informer of all pods an ended one would count.
func TestKeeper_SeesNoPodThatHasEnded(t *testing.T) {
	client := fake.NewClientset()
	selectors := make(chan string, 8)
	client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if list, ok := action.(clienttesting.ListAction); ok {
			selectors <- list.GetListRestrictions().Fields.String()
		}
		return false, nil, nil
	})
	factory := kubescheduler.NewInformerFactory(client, 0, nil)
	if _, err := podgroups.New(client, factory, gangapi.Resources, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer stop()
	factory.Start(ctx.Done())
	select {
	case got := <-selectors:
		if got != "status.phase!=Failed,status.phase!=Succeeded" {
			t.Errorf("the informer selects pods by %q", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the informer lists no pods")
	}

	ended := member("rank-0", 0)
	ended.Status.Phase = corev1.PodSucceeded
	newFakeCluster(t, gangapi.Resources, true, gang(protected, deleted), ended).stays("with an informer of all pods")
}
