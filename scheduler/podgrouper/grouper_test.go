package podgrouper_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/dialects"
	"github.com/lockstep-project/lockstep/scheduler/podgrouper"
	"github.com/lockstep-project/lockstep/topology"
)

var foreign = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// natives are Kubernetes' own groups.
var natives = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1alpha2", Resource: "podgroups"}

// reader reads all marks that need no configuration.
func reader() *dialects.Reader {
	explicit, owners := dialects.Builtin()
	table := slices.Concat(dialects.Table{dialects.Native(natives.Version)}, explicit, owners)
	return dialects.NewReader(table, []string{"lockstep-scheduler"}, nil)
}

// fakeCluster is a cluster of fakes in which a Grouper runs.
type fakeCluster struct {
	t        *testing.T
	client   *fake.Clientset
	objects  *dynamicfake.FakeDynamicClient
	recorder *events.FakeRecorder
}

func newFakeCluster(t *testing.T, served ...string) *fakeCluster {
	t.Helper()
	w := &fakeCluster{t: t, client: fake.NewClientset(), recorder: events.NewFakeRecorder(100)}
	for _, resource := range served {
		for _, version := range []schema.GroupVersion{foreign.GroupVersion(), natives.GroupVersion()} {
			w.client.Resources = append(w.client.Resources, &metav1.APIResourceList{
				GroupVersion: version.String(), APIResources: []metav1.APIResource{{Name: resource}},
			})
		}
	}
	w.objects = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{foreign: "PodGroupList", natives: "PodGroupList"})
	factory := informers.NewSharedInformerFactory(w.client, 0)
	reader := reader()
	grouper, err := podgrouper.New(podgrouper.Cluster{
		Client: w.client, Objects: podgrouper.Objects{Dynamic: w.objects, Discovery: w.client.Discovery()},
		API: gangapi.Resources, Factory: factory, Recorder: w.recorder, Clock: clock.RealClock{},
	}, reader, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() { defer close(done); grouper.Run(ctx) }()
	return w
}

// pod creates a pod of ours with labels and annotations, as the scheduler's client would read it.
func (w *fakeCluster) pod(name string, labels, annotations map[string]string) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: labels, Annotations: annotations},
	}
	pod.Spec.SchedulerName = "lockstep-scheduler"
	gangapi.Adopt(pod, reader().Membership)
	if _, err := w.client.CoreV1().Pods("team").Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// group sets the minimum of a PodGroup of scheduler-plugins.
func (w *fakeCluster) group(name string, minimum int64, annotations map[string]any) {
	w.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": foreign.GroupVersion().String(), "kind": "PodGroup",
		"metadata": map[string]any{"namespace": "team", "name": name, "uid": "u-" + name, "annotations": annotations},
		"spec":     map[string]any{"minMember": minimum},
	}}
	_, err := w.objects.Resource(foreign).Namespace("team").Create(w.t.Context(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = w.objects.Resource(foreign).Namespace("team").Update(w.t.Context(), object, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// until waits until a PodGroup is as a function says; nil for one that is not there.
func (w *fakeCluster) until(name, what string, is func(*schedulingv1beta1.PodGroup) bool) {
	w.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		group, err := w.client.SchedulingV1beta1().PodGroups("team").Get(w.t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			group, err = nil, nil
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if is(group) {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s: %s; it is %+v", name, what, group)
		}
	}
}

func minimum(of int32) func(*schedulingv1beta1.PodGroup) bool {
	return func(group *schedulingv1beta1.PodGroup) bool {
		return group != nil && group.Spec.SchedulingPolicy.Gang.MinCount == of
	}
}

// The PodGroup of a mark follows the object behind it, and is owned by it.
func TestGrouper_FollowsTheObject(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t, foreign.Resource)
	w.pod("a", map[string]string{"scheduling.x-k8s.io/pod-group": "g"}, nil)
	time.Sleep(50 * time.Millisecond)
	w.until(
		"scheduler-plugins.g",
		"it is there before the object",
		func(g *schedulingv1beta1.PodGroup) bool { return g == nil },
	)
	w.group(
		"g",
		2,
		map[string]any{"lockstep.dev/required-topology": "rack", "lockstep.dev/queued-at": "2020-01-01T00:00:00Z"},
	)
	w.until("scheduler-plugins.g", "it is not created", func(g *schedulingv1beta1.PodGroup) bool {
		return minimum(2)(g) && g.Annotations["lockstep.dev/required-topology"] == "rack" &&
			g.Annotations["lockstep.dev/queued-at"] == "" &&
			g.Annotations[dialects.AnnotationDialect] == "scheduler-plugins" &&
			g.Annotations[topology.AnnotationOnLoss] == topology.OnLossGone &&
			slices.Contains(g.Finalizers, gangapi.Finalizer) &&
			len(g.OwnerReferences) == 1 &&
			g.OwnerReferences[0].UID == "u-g"
	})
	w.group("g", 3, map[string]any{"lockstep.dev/preferred-topology": "rack"})
	w.until("scheduler-plugins.g", "it does not change", func(g *schedulingv1beta1.PodGroup) bool {
		_, required := g.Annotations["lockstep.dev/required-topology"]
		return minimum(3)(g) && !required && g.Annotations["lockstep.dev/preferred-topology"] == "rack"
	})
	err := w.client.SchedulingV1beta1().
		PodGroups("team").
		Delete(t.Context(), "scheduler-plugins.g", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.until("scheduler-plugins.g", "it does not come back", minimum(3))
	if err := w.client.CoreV1().Pods("team").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	w.until("scheduler-plugins.g", "it does not keep its place in the queue", minimum(3))
	if err := w.objects.Resource(foreign).
		Namespace("team").
		Delete(t.Context(), "g", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until(
		"scheduler-plugins.g",
		"it outlives the object",
		func(g *schedulingv1beta1.PodGroup) bool { return g == nil },
	)
}

// A trial of a sweep may be any marked gang: the label of its pods is its PodGroup's.
func TestGrouper_KeepsTheSweep(t *testing.T) {
	w := newFakeCluster(t, foreign.Resource)
	w.pod("a", map[string]string{"scheduling.x-k8s.io/pod-group": "g", topology.LabelSweep: "lr"},
		map[string]string{topology.AnnotationSweepParallelism: "4"})
	w.group("g", 1, nil)
	w.until("scheduler-plugins.g", "it is no trial", func(g *schedulingv1beta1.PodGroup) bool {
		return minimum(1)(g) && g.Labels[topology.LabelSweep] == "lr" &&
			g.Annotations[topology.AnnotationSweepParallelism] == "4"
	})
}

// A gang that pods describe has a PodGroup as long as it has a pod.
func TestGrouper_DeletesWithTheLastPod(t *testing.T) {
	w := newFakeCluster(t)
	for rank := range 2 {
		w.pod(fmt.Sprintf("p-%d", rank), map[string]string{"kueue.x-k8s.io/pod-group-name": "sky"},
			map[string]string{"kueue.x-k8s.io/pod-group-total-count": "2"})
	}
	w.until("kueue.sky", "it is not created", minimum(2))
	for rank := range 2 {
		if err := w.client.CoreV1().
			Pods("team").
			Delete(t.Context(), fmt.Sprintf("p-%d", rank), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if rank == 0 {
			time.Sleep(50 * time.Millisecond)
			w.until("kueue.sky", "it is deleted while it has a pod", minimum(2))
		}
	}
	w.until("kueue.sky", "it stays", func(g *schedulingv1beta1.PodGroup) bool { return g == nil })
}

// A mark that cannot be read is reported on the pod, and does not delay another gang's PodGroup.
func TestGrouper_SaysWhatItCannotRead(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	w.pod("a", map[string]string{"scheduling.x-k8s.io/pod-group": "g"}, nil)
	w.pod(
		"b",
		map[string]string{"kueue.x-k8s.io/pod-group-name": "sky"},
		map[string]string{"kueue.x-k8s.io/pod-group-total-count": "x"},
	)
	w.pod(
		"c",
		map[string]string{"kueue.x-k8s.io/pod-group-name": "good"},
		map[string]string{"kueue.x-k8s.io/pod-group-total-count": "1"},
	)
	w.until("kueue.good", "it is not created", minimum(1))
	said := map[string]bool{}
	for end := time.After(10 * time.Second); !said["podgroups.scheduling.x-k8s.io are not served"] || !said["must be a positive number"]; {
		select {
		case event := <-w.recorder.Events:
			for _, part := range []string{"podgroups.scheduling.x-k8s.io are not served", "must be a positive number"} {
				said[part] = said[part] || strings.Contains(event, part)
			}
		case <-end:
			t.Fatalf("said: %v", said)
		}
	}
}

// A tenant's pods with marks of a kind that is not served cost one question, not one each and again at each try: the
// worker's requests are everybody's.
func TestGrouper_AsksOnceForAnUnservedKind(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	for i := range 50 {
		w.pod(fmt.Sprint("p", i), map[string]string{"scheduling.x-k8s.io/pod-group": fmt.Sprint("g", i)}, nil)
	}
	w.pod(
		"last",
		map[string]string{"kueue.x-k8s.io/pod-group-name": "good"},
		map[string]string{"kueue.x-k8s.io/pod-group-total-count": "1"},
	)
	w.until("kueue.good", "it is not created", minimum(1))
	asked := 0
	for _, action := range w.client.Actions() {
		if action.GetVerb() == "get" && action.GetResource().Resource == "resource" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("it asked %d times for the kind, want once", asked)
	}
}

// Pods of other schedulers, and pods that name their group themselves, are left alone.
func TestGrouper_LeavesOthersAlone(t *testing.T) {
	w := newFakeCluster(t)
	mark := map[string]string{"kueue.x-k8s.io/pod-group-name": "theirs"}
	size := map[string]string{"kueue.x-k8s.io/pod-group-total-count": "1"}
	theirs := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "theirs", Labels: mark, Annotations: size},
	}
	theirs.Spec.SchedulerName = "default-scheduler"
	if _, err := w.client.CoreV1().Pods("team").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.pod("own", map[string]string{"kueue.x-k8s.io/pod-group-name": "x", gangapi.Label: "own"}, size)
	w.pod("marker", map[string]string{"kueue.x-k8s.io/pod-group-name": "last"}, size)
	w.until("kueue.last", "it is not created", minimum(1))
	list, err := w.client.SchedulingV1beta1().PodGroups("team").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%d PodGroups (%v)", len(list.Items), err)
	}
}

// A PodGroup whose last pod ended while no scheduler ran is deleted at the next start, and one that a user made is not.
func TestGrouper_DeletesWhatWasLeft(t *testing.T) {
	w := newFakeCluster(t)
	for name, annotations := range map[string]map[string]string{
		"kueue.left": {dialects.AnnotationDialect: "kueue"}, "own": nil,
	} {
		group := &schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Annotations: annotations},
		}
		if _, err := w.client.SchedulingV1beta1().
			PodGroups("team").
			Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.until("kueue.left", "it stays", func(g *schedulingv1beta1.PodGroup) bool { return g == nil })
	w.until("own", "it is deleted", func(g *schedulingv1beta1.PodGroup) bool { return g != nil })
}

// A native group of an API that does not store gangs has a PodGroup of its own name in the API that does; one that a
// user made there is not touched.
func TestGrouper_CopiesNativeGroups(t *testing.T) {
	w := newFakeCluster(t, natives.Resource)
	for _, name := range []string{"g", "own"} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": natives.GroupVersion().String(), "kind": "PodGroup",
			"metadata": map[string]any{"namespace": "team", "name": name, "uid": "u-" + name},
			"spec": map[string]any{
				"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(2)}},
			},
		}}
		if _, err := w.objects.Resource(natives).
			Namespace("team").
			Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	own := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "own"}}
	own.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 7}
	if _, err := w.client.SchedulingV1beta1().
		PodGroups("team").
		Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own", "g"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "of-" + name}}
		pod.Spec.SchedulerName = "lockstep-scheduler"
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new(name)}
		if _, err := w.client.CoreV1().Pods("team").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.until("g", "it is not created", func(g *schedulingv1beta1.PodGroup) bool {
		return minimum(2)(g) && g.Annotations[dialects.AnnotationDialect] == "native" &&
			g.OwnerReferences[0].UID == "u-g"
	})
	w.until("own", "it is changed", func(g *schedulingv1beta1.PodGroup) bool {
		return minimum(7)(g) && g.Annotations[dialects.AnnotationDialect] == ""
	})
}
