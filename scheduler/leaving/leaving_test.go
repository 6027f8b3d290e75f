package leaving_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/leaving"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest/fakeserver"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology"
)

// handle is the scheduler as the watch sees it.
type handle struct {
	fwk.Handle
	*fake.Clientset
	informers informers.SharedInformerFactory
	events    *events.FakeRecorder
	standsBy  atomic.Bool
}

func (h *handle) ClientSet() kubernetes.Interface                        { return h.Clientset }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }
func (h *handle) EventRecorder() events.EventRecorderLogger              { return h.events }
func (*handle) ProfileName() string                                      { return "lockstep-scheduler" }

// bubble runs a test with nodes a and b and two gangs, each with a rank on both, in time of its own.
func bubble(t *testing.T, test func(t *testing.T, h *handle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); synctest.Wait() }()
		h := &handle{Clientset: fake.NewClientset(), events: events.NewFakeRecorder(9)}
		fakeserver.HonorFields(h.Clientset)
		for _, node := range []string{"a", "b"} {
			if err := h.Tracker().Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"g", "h"} {
			group := &schedulingv1beta1.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
			}
			if err := h.Tracker().Add(group); err != nil {
				t.Fatal(err)
			}
			for _, node := range []string{"a", "b"} {
				if err := h.Tracker().Add(rank(name, node)); err != nil {
					t.Fatal(err)
				}
			}
		}
		h.informers = fakeserver.Informers(h.Clientset)
		acts := func() bool { return !h.standsBy.Load() }
		if err := leaving.Watch(ctx, h, acts, timing.With(clock.RealClock{})); err != nil {
			t.Fatal(err)
		}
		h.informers.Start(ctx.Done())
		h.informers.WaitForCacheSync(ctx.Done())
		synctest.Wait()
		test(t, h)
	})
}

func rank(group, node string) *corev1.Pod {
	name := fmt.Sprintf("%s-%s", group, node)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{
			SchedulerName: "lockstep-scheduler", NodeName: node,
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// put replaces a node.
func (h *handle) put(t *testing.T, name string, annotations map[string]string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	if _, err := h.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// saves has the trainer of a gang save its work, or say that it did earlier.
func (h *handle) saves(t *testing.T, name string, ago time.Duration) {
	t.Helper()
	groups := h.SchedulingV1beta1().PodGroups("ns")
	group, err := groups.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	group = group.DeepCopy()
	metav1.SetMetaDataAnnotation(
		&group.ObjectMeta,
		topology.AnnotationLastCheckpoint,
		time.Now().Add(-ago).Format(time.RFC3339),
	)
	if _, err := groups.Update(t.Context(), group, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// final has the owner of a gang create no rank again.
func (h *handle) final(t *testing.T, name string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, topology.AnnotationOnLoss, topology.OnLossGone)
	groups := h.SchedulingV1beta1().PodGroups("ns")
	if _, err := groups.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// runs are the ranks that are there.
func (h *handle) runs(t *testing.T) string {
	t.Helper()
	pods, err := h.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// play carries out the words, one after the other: mark and clear a node, save the work of a gang now or two minutes
// ago, wait a minute, or have another scheduler decide.
func (h *handle) play(t *testing.T, words ...string) {
	t.Helper()
	for _, word := range words {
		what, name, _ := strings.Cut(word, " ")
		switch what {
		case "mark":
			h.put(t, name, map[string]string{topology.KeyAvoid: ""})
		case "clear":
			h.put(t, name, nil)
		case "save":
			h.saves(t, name, 0)
		case "saved":
			h.saves(t, name, 2*time.Minute)
		case "final":
			h.final(t, name)
		case "wait":
			time.Sleep(time.Minute)
		case "standby":
			h.standsBy.Store(true)
		default:
			t.Fatalf("unknown: %s", word)
		}
	}
}

func TestWatch(t *testing.T) {
	for name, test := range map[string]struct {
		happens []string
		want    string
	}{
		"no checkpoint":                 {[]string{"mark a", "wait"}, "g-a g-b h-a h-b"},
		"one gang saves":                {[]string{"mark a", "wait", "save g"}, "g-b h-a h-b"},
		"it saved before the mark":      {[]string{"mark a", "wait", "saved g"}, "g-a g-b h-a h-b"},
		"both save, in turn":            {[]string{"mark a", "wait", "save h", "wait", "save g"}, "g-b h-b"},
		"all its nodes":                 {[]string{"mark a", "mark b", "wait", "save h"}, "g-a g-b"},
		"the mark is gone":              {[]string{"mark a", "clear a", "wait", "save h"}, "g-a g-b h-a h-b"},
		"nothing would create it again": {[]string{"final g", "mark a", "wait", "save g", "save h"}, "g-a g-b h-b"},
		"another scheduler decides":     {[]string{"standby", "mark a", "wait", "save h"}, "g-a g-b h-a h-b"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *handle) {
				t.Helper()
				h.play(t, test.happens...)
				if got := h.runs(t); got != test.want {
					t.Errorf("there are %s, want %s", got, test.want)
				}
			})
		})
	}
}

// A rank that leaves is a disruption for its Job, and its owner gets the reason.
func TestWatch_Tells(t *testing.T) {
	bubble(t, func(t *testing.T, h *handle) {
		t.Helper()
		h.play(t, "mark b", "wait", "save g")
		var patches []string
		for _, action := range h.Actions() {
			if patch, ok := action.(interface{ GetPatch() []byte }); ok {
				patches = append(patches, string(patch.GetPatch()))
			}
		}
		if len(patches) != 1 || !strings.Contains(patches[0], `"DisruptionTarget"`) ||
			!strings.Contains(patches[0], leaving.Reason) {
			t.Errorf("the pods were changed so: %v", patches)
		}
		if event := <-h.events.Events; !strings.Contains(
			event,
			"rank g-b leaves: node b has the mark lockstep.dev/avoid",
		) {
			t.Errorf("the Event is %s", event)
		}
	})
}
