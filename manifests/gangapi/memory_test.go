package gangapi_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// memory is the ConfigMap with a user's content.
func memory(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: gangapi.Memory}, Data: data}
}

// Processes that start for the first time at once all use the API that one of them has remembered.
func TestRemember_ProcessesAtOnce(t *testing.T) {
	const processes = 16
	for range 20 {
		client := fake.NewClientset()
		var started sync.WaitGroup
		counted := make([]gangapi.API, processes)
		for process := range processes {
			chosen := gangapi.Native
			if process%2 == 0 {
				chosen = gangapi.Resources
			}
			started.Go(func() {
				api, err := gangapi.Remember(t.Context(), client, namespace, chosen, "")
				if err != nil {
					t.Error(err)
				}
				counted[process] = api
			})
		}
		started.Wait()
		kept, err := gangapi.Remembered(t.Context(), client, namespace)
		if err != nil {
			t.Fatal(err)
		}
		for process, api := range counted {
			if api != kept {
				t.Fatalf("process %d uses %q, and %q is remembered", process, api, kept)
			}
		}
	}
}

// The installed ConfigMap is empty, which is no choice. The first process that writes one wins, and the labels stay.
func TestRemember_InWhatIsInstalled(t *testing.T) {
	installed := memory(nil)
	installed.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	client := fake.NewClientset(installed)
	if api, err := gangapi.Remembered(t.Context(), client, namespace); err != nil || api != "" {
		t.Errorf("%q is remembered (%v) before any choice", api, err)
	}
	overtaken := false
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if overtaken {
			return false, nil, nil
		}
		overtaken = true
		other := installed.DeepCopy()
		other.Data = map[string]string{"api": "native"}
		if err := client.Tracker().
			Update(corev1.SchemeGroupVersion.WithResource("configmaps"), other, namespace); err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewConflict(
			corev1.Resource("configmaps"),
			gangapi.Memory,
			errors.New("another was faster"),
		)
	})
	api, err := gangapi.Remember(t.Context(), client, namespace, gangapi.Resources, "")
	if err != nil || api != gangapi.Native {
		t.Errorf("%q counts (%v), want what another has written meanwhile", api, err)
	}
	if api, err = gangapi.Remember(t.Context(), client, namespace, gangapi.Resources, gangapi.Resources); err != nil ||
		api != gangapi.Resources {
		t.Errorf("with a flag %q counts (%v)", api, err)
	}
	kept, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), gangapi.Memory, metav1.GetOptions{})
	if err != nil || len(kept.Labels) == 0 {
		t.Errorf("who installed it is forgotten: %v (%v)", kept, err)
	}
}

// A value that is no API never becomes the choice, even if it is written between two requests. A flag replaces it.
func TestRemember_ForeignValue(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"a slip of the pen": {"api": "Native"}, "a version": {"api": "native-v1"},
	} {
		client := fake.NewClientset(memory(data))
		if api, err := gangapi.Remember(t.Context(), client, namespace, gangapi.Resources, ""); err == nil ||
			!strings.Contains(err.Error(), "write native or resources") {
			t.Errorf("%s: %q counts (%v), want an error", name, api, err)
		}
		api, err := gangapi.Remember(t.Context(), client, namespace, gangapi.Resources, gangapi.Resources)
		if err != nil || api != gangapi.Resources {
			t.Errorf("%s, and a flag: %q counts (%v)", name, api, err)
		}
		if kept, err := gangapi.Remembered(t.Context(), client, namespace); err != nil || kept != gangapi.Resources {
			t.Errorf("%s, and a flag: %q is remembered (%v)", name, kept, err)
		}
	}
}

// Follow continues if the ConfigMap cannot be read, is deleted, or has a value that is no API. It ends without an error
// with its context.
func TestFollow_KeepsTheChoiceWhileItCannotBeRead(t *testing.T) {
	client := fake.NewClientset(memory(map[string]string{"api": "resources"}))
	maps := client.CoreV1().ConfigMaps(namespace)
	clock := clocktesting.NewFakeClock(time.Now())
	reads := make(chan struct{})
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		reads <- struct{}{}
		return false, nil, nil
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- gangapi.Follow(ctx, client, namespace, gangapi.Resources, clock) }()
	look := func(what string) {
		t.Helper()
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		clock.Step(20 * time.Second)
		select {
		case <-reads:
		case err := <-ended:
			t.Fatalf("%s: it ended (%v)", what, err)
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: nothing was read", what)
		}
	}
	look("as it started")
	if _, err := maps.Update(ctx, memory(map[string]string{"api": "Native"}), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	look("with a foreign value")
	if err := maps.Delete(ctx, gangapi.Memory, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	look("without the ConfigMap")
	look("after it")
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v, want nil", err)
	}
}

// The field of a pod wins over its label, and a pod without either is in no group. Adopt changes pods without the field
// only.
func TestAdopt(t *testing.T) {
	name := func(group string) *corev1.PodSchedulingGroup { return &corev1.PodSchedulingGroup{PodGroupName: &group} }
	labeled := map[string]string{gangapi.Label: "labeled"}
	for what, c := range map[string]struct {
		pod  corev1.Pod
		want string
	}{
		"neither":          {corev1.Pod{}, ""},
		"another label":    {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "a"}}}, ""},
		"an empty label":   {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{gangapi.Label: ""}}}, ""},
		"the label":        {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labeled}}, "labeled"},
		"the field":        {corev1.Pod{Spec: corev1.PodSpec{SchedulingGroup: name("of-field")}}, "of-field"},
		"field and label":  {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labeled}, Spec: corev1.PodSpec{SchedulingGroup: name("of-field")}}, "of-field"},
		"label, and again": {*adopted(corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labeled}}), "labeled"},
	} {
		if got := gangapi.GroupOf(c.pod.ObjectMeta, c.pod.Spec); got != c.want {
			t.Errorf("%s: the pod is in %q, want %q", what, got, c.want)
		}
		pod := adopted(c.pod)
		group := pod.Spec.SchedulingGroup
		if (group == nil) != (c.want == "") || group != nil && *group.PodGroupName != c.want {
			t.Errorf("%s: the field is %+v, want %q", what, group, c.want)
		}
	}
}

func adopted(pod corev1.Pod) *corev1.Pod {
	gangapi.Adopt(&pod)
	return &pod
}
