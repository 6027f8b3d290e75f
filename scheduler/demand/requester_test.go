package demand_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/demand"
)

var provisioning = schema.GroupVersionResource{
	Group:    "autoscaling.x-k8s.io",
	Version:  "v1",
	Resource: "provisioningrequests",
}

// fakeCluster is a cluster of fakes in which a Requester runs.
type fakeCluster struct {
	t       *testing.T
	client  *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	clock   *testingclock.FakeClock
}

func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()
	w := &fakeCluster{t: t, client: fake.NewClientset(), clock: testingclock.NewFakeClock(time.Unix(0, 0))}
	w.client.Resources = []*metav1.APIResourceList{{
		GroupVersion: "autoscaling.x-k8s.io/v1", APIResources: []metav1.APIResource{{Name: provisioning.Resource}},
	}}
	w.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{provisioning: "ProvisioningRequestList"})
	factory := informers.NewSharedInformerFactory(w.client, 0)
	requester, err := demand.New(demand.Cluster{
		Client: w.client, Dynamic: w.dynamic, API: gangapi.Resources, Clock: w.clock,
	}, factory, class, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() { defer close(done); requester.Run(ctx) }()
	return w
}

// requests returns the ProvisioningRequests that are there.
func (w *fakeCluster) requests() []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.dynamic.Resource(provisioning).Namespace("team").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// until moves the clock until there are as many requests, with as many members in all.
func (w *fakeCluster) until(requests, members int) {
	w.t.Helper()
	for range 2000 {
		sum := 0
		found := w.requests()
		for _, request := range found {
			sets, _, _ := unstructured.NestedSlice(request.Object, "spec", "podSets")
			for _, set := range sets {
				count, _, _ := unstructured.NestedInt64(set.(map[string]any), "count")
				sum += int(count)
			}
		}
		if len(found) == requests && sum == members {
			return
		}
		w.clock.Step(time.Second)
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatalf("there are %d requests, want %d for %d members", len(w.requests()), requests, members)
}

func (w *fakeCluster) templates() int {
	w.t.Helper()
	list, err := w.client.CoreV1().PodTemplates("team").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(list.Items)
}

func (w *fakeCluster) create(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) {
	w.t.Helper()
	if _, err := w.client.SchedulingV1beta1().
		PodGroups("team").
		Create(w.t.Context(), group, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	for _, pod := range pods {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new(group.Name)}
		if _, err := w.client.CoreV1().Pods("team").Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A gang that waits has one request with its templates, owned by its PodGroup; it is deleted with the wait, and created
// again if a user deletes it.
func TestRequester(t *testing.T) {
	w := newFakeCluster(t)
	group := groupOf(3)
	w.create(group, podsOf(1, 4, 4))
	w.until(1, 3)
	request := w.requests()[0]
	owners := request.GetOwnerReferences()
	if len(owners) != 1 || owners[0].UID != group.UID || owners[0].APIVersion != "scheduling.lockstep.dev/v1beta1" {
		t.Errorf("its owners are %+v", owners)
	}
	if got, _, _ := unstructured.NestedString(request.Object, "spec", "provisioningClassName"); got != class {
		t.Errorf("its class is %q", got)
	}
	if got := w.templates(); got != 2 {
		t.Errorf("there are %d templates, want one of each kind of members", got)
	}
	// A new message about a gang that waits on changes nothing.
	group.Status.Conditions[0].Message = "5 members lack a node each"
	w.update(group)
	w.clock.Step(time.Minute)
	time.Sleep(50 * time.Millisecond)
	writes := 0
	for _, action := range w.dynamic.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "watch" {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("there were %d writes, want one: %v", writes, w.dynamic.Actions())
	}
	if err := w.dynamic.Resource(provisioning).Namespace("team").
		Delete(t.Context(), request.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until(1, 3)
	if again := w.requests()[0].GetName(); again != request.GetName() {
		t.Errorf("it has another name, %s, not %s", again, request.GetName())
	}
	group.Status.Conditions[0].Status = metav1.ConditionFalse
	w.update(group)
	w.until(0, 0)
	for range 1000 {
		if w.templates() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d templates are left", w.templates())
}

func (w *fakeCluster) update(group *schedulingv1beta1.PodGroup) {
	w.t.Helper()
	if _, err := w.client.SchedulingV1beta1().PodGroups("team").
		Update(w.t.Context(), group.DeepCopy(), metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// A gang that waits for a moment only, as for victims that leave, requests nothing.
func TestRequester_ShortWait(t *testing.T) {
	w := newFakeCluster(t)
	group := groupOf(2)
	w.create(group, podsOf(4, 4))
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		w.clock.Step(time.Second)
	}
	group.Status.Conditions[0].Status = metav1.ConditionFalse
	w.update(group)
	time.Sleep(20 * time.Millisecond)
	for range 20 {
		w.clock.Step(time.Second)
		time.Sleep(5 * time.Millisecond)
	}
	for _, action := range w.dynamic.Actions() {
		if strings.HasPrefix(action.GetVerb(), "create") {
			t.Errorf("it was written: %v", action)
		}
	}
}
