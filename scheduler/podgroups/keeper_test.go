package podgroups_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/podgroups"
)

// fakeCluster is a cluster with a keeper of its groups.
type fakeCluster struct {
	t      *testing.T
	client *fake.Clientset
	leads  atomic.Bool
}

func newFakeCluster(t *testing.T, api gangapi.API, leads bool, objects ...runtime.Object) *fakeCluster {
	t.Helper()
	w := &fakeCluster{t: t, client: fake.NewClientset(objects...)}
	w.leads.Store(leads)
	factory := informers.NewSharedInformerFactory(w.client, 0)
	keeper, err := podgroups.New(w.client, factory, api, w.leads.Load)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	factory.Start(ctx.Done())
	go func() {
		keeper.Run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		factory.Shutdown()
	})
	return w
}

func (w *fakeCluster) group() *schedulingv1beta1.PodGroup {
	w.t.Helper()
	group, err := w.client.SchedulingV1beta1().PodGroups("team-a").Get(w.t.Context(), "gang", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return group
}

// becomes waits until the group is as expected.
func (w *fakeCluster) becomes(what string, done func(*schedulingv1beta1.PodGroup) bool) {
	w.t.Helper()
	for range 500 {
		if done(w.group()) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatalf("%s: the group is %+v", what, w.group())
}

// stays checks for a while that the group is unchanged.
func (w *fakeCluster) stays(what string) {
	w.t.Helper()
	before := w.group()
	time.Sleep(150 * time.Millisecond)
	if now := w.group(); !slices.Equal(now.Finalizers, before.Finalizers) ||
		!ptr.Equal(now.Spec.Priority, before.Spec.Priority) {
		w.t.Errorf("%s: the group became %+v", what, now)
	}
}

// create adds the group.
func (w *fakeCluster) create() {
	w.t.Helper()
	groups := w.client.SchedulingV1beta1().PodGroups("team-a")
	if _, err := groups.Create(w.t.Context(), gang(), metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func gang(change ...func(*schedulingv1beta1.PodGroup)) *schedulingv1beta1.PodGroup {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "gang", UID: "1"}}
	for _, c := range change {
		c(group)
	}
	return group
}

func protected(group *schedulingv1beta1.PodGroup) {
	group.Finalizers = []string{"example.com/other", gangapi.Finalizer}
}

func deleted(group *schedulingv1beta1.PodGroup) {
	group.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)}
}

// member is a pod as the scheduler's client shows it: with the field, also if the pod joined by the label.
func member(name string, priority int32) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name},
		Spec: corev1.PodSpec{
			Priority:        &priority,
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: new("gang")},
		},
	}
}

func isProtected(group *schedulingv1beta1.PodGroup) bool {
	return slices.Contains(group.Finalizers, gangapi.Finalizer)
}

// A deleted group outlives its last pod, in either API: groups that were moved bring the finalizer along. The
// scheduler's informer shows no pod that has ended.
func TestKeeper_ProtectsAGroupUntilItsPodsAreGone(t *testing.T) {
	for _, api := range []gangapi.API{gangapi.Native, gangapi.Resources} {
		w := newFakeCluster(t, api, true, gang(protected, deleted), member("rank-0", 0), member("rank-1", 0))
		pods := w.client.CoreV1().Pods("team-a")
		w.stays("with two pods")
		if err := pods.Delete(t.Context(), "rank-0", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.stays("with one pod")
		if err := pods.Delete(t.Context(), "rank-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.becomes("without pods", func(group *schedulingv1beta1.PodGroup) bool { return !isProtected(group) })
		if got := w.group().Finalizers; !slices.Equal(got, []string{"example.com/other"}) {
			t.Errorf("%s: the finalizers of others are %v", api, got)
		}
	}
}

// A custom resource gets the fields that Kubernetes' API server gives its own groups, from pods that it has checked.
func TestKeeper_AdoptsCustomResources(t *testing.T) {
	w := newFakeCluster(t, gangapi.Resources, true, gang())
	w.becomes("a group without pods", func(group *schedulingv1beta1.PodGroup) bool {
		return isProtected(group) && group.Spec.Priority == nil
	})
	w.stays("a group without pods")
	if _, err := w.client.CoreV1().
		Pods("team-a").
		Create(t.Context(), member("rank-0", 7), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes("with a pod", func(group *schedulingv1beta1.PodGroup) bool {
		return group.Spec.Priority != nil && *group.Spec.Priority == 7
	})
	if _, err := w.client.CoreV1().
		Pods("team-a").
		Create(t.Context(), member("rank-1", 9), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.stays("with a pod of another priority")

	gone := newFakeCluster(t, gangapi.Resources, true, gang(protected, deleted))
	gone.becomes("a deleted group that never had pods", func(group *schedulingv1beta1.PodGroup) bool {
		return !isProtected(group)
	})

	native := newFakeCluster(t, gangapi.Native, true, gang(), member("rank-0", 7))
	native.stays("a native group")
}

// A scheduler that stands by does nothing, and all of it once it leads.
func TestKeeper_WritesWhileItLeads(t *testing.T) {
	w := newFakeCluster(t, gangapi.Resources, false, gang(), member("rank-0", 7))
	w.stays("standing by")
	w.leads.Store(true)
	w.becomes("leading", isProtected)
}

// A gang waits until its group has the priority of its pods; a group without one counts as zero.
func TestUnstamped_WaitsForPriority(t *testing.T) {
	seven := func(group *schedulingv1beta1.PodGroup) { group.Spec.Priority = new(int32(7)) }
	for name, c := range map[string]struct {
		group *schedulingv1beta1.PodGroup
		pod   *corev1.Pod
		want  bool
	}{
		"a priority that is missing": {gang(), member("rank-0", 7), true},
		"a priority that is there":   {gang(seven), member("rank-0", 7), false},
		"no priority":                {gang(), member("rank-0", 0), false},
		"a pod that nobody checked":  {gang(), &corev1.Pod{}, false},
	} {
		if got := podgroups.Unstamped(c.group, c.pod); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
