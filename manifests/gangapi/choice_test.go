package gangapi_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

const namespace = "lockstep-system"

// A choice is permanent, whatever is served later; where no API is served, the error names the missing API and the
// remedy.
func TestChoose(t *testing.T) {
	const native, v1, resources = gangapi.Native, gangapi.NativeV1, gangapi.Resources
	all := gangapi.Served{Native: true, NativeV1: true, Resources: true}
	later := gangapi.Served{NativeV1: true, Resources: true}
	stock := gangapi.Served{Resources: true}
	for name, c := range map[string]struct {
		wanted, remembered gangapi.API
		served             gangapi.Served
		want               gangapi.API
		says               string
	}{
		"the first start":                     {served: all, want: native},
		"the first start on a stock cluster":  {served: stock, want: resources},
		"the first start on a later release":  {served: later, want: v1},
		"an upgrade of the cluster":           {remembered: resources, served: all, want: resources},
		"an upgrade that drops a version":     {remembered: native, served: later, want: v1},
		"told to move":                        {wanted: native, remembered: resources, served: all, want: native},
		"told to move back":                   {wanted: resources, remembered: native, served: all, want: resources},
		"told what is not served":             {wanted: native, served: stock, says: "--feature-gates=GenericWorkload=true"},
		"what was chosen is not served":       {remembered: native, served: stock, says: "lockstep-gang-api"},
		"the CRD was deleted":                 {remembered: resources, served: gangapi.Served{Native: true}, says: "apply manifests/chart/crds"},
		"nothing is served, and nothing said": {says: "apply manifests/chart/crds"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := gangapi.Choose(c.wanted, c.remembered, c.served)
			if got != c.want || errors.Is(err, gangapi.ErrNoAPI) != (c.says != "") {
				t.Fatalf("%q (%v), want %q", got, err, c.want)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("it says %q, want one line with %q", err, c.says)
			}
		})
	}
}

// Of two processes that start side by side for the first time, the first decides for both. A process with a flag
// replaces the choice.
func TestRemember(t *testing.T) {
	client := fake.NewClientset()
	for _, step := range []struct{ chosen, wanted, want gangapi.API }{
		{gangapi.Resources, "", gangapi.Resources},
		{gangapi.Native, "", gangapi.Resources}, // it looked before the CRD was there
		{gangapi.Native, gangapi.Native, gangapi.Native},
		{gangapi.NativeV1, "", gangapi.NativeV1}, // the same API, at the version that is served
		{gangapi.Resources, gangapi.Resources, gangapi.Resources},
	} {
		got, err := gangapi.Remember(t.Context(), client, namespace, step.chosen, step.wanted)
		if err != nil || got != step.want {
			t.Errorf("chosen %q, wanted %q: %q counts (%v), want %q", step.chosen, step.wanted, got, err, step.want)
		}
	}
	if kept, err := gangapi.Remembered(t.Context(), client, namespace); err != nil || kept != gangapi.Resources {
		t.Errorf("%q is remembered (%v)", kept, err)
	}
}

// A user's typing error must not move a cluster's gangs.
func TestRemembered_WhatNobodyWrote(t *testing.T) {
	client := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      gangapi.Memory,
		},
		Data: map[string]string{"api": "Native"},
	})
	_, err := gangapi.Remembered(t.Context(), client, namespace)
	if err == nil || !strings.Contains(err.Error(), `no API "Native"; write native or resources`) {
		t.Errorf("%v", err)
	}
}

// A process ends, to start again, once gangs are stored in another API; the same API at another version is no move.
func TestFollow(t *testing.T) {
	client := fake.NewClientset()
	if _, err := gangapi.Remember(t.Context(), client, namespace, gangapi.NativeV1, ""); err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(time.Now())
	ended := make(chan error, 1)
	go func() { ended <- gangapi.Follow(t.Context(), client, namespace, gangapi.NativeV1, clock) }()
	look := func() {
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		clock.Step(20 * time.Second)
	}
	look()
	select {
	case err := <-ended:
		t.Fatalf("it ended, and nothing has changed: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := gangapi.Remember(t.Context(), client, namespace, gangapi.Resources, gangapi.Resources); err != nil {
		t.Fatal(err)
	}
	look()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "scheduling.lockstep.dev/v1beta1") {
		t.Errorf("it ended with %v, want where gangs are now", err)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]gangapi.API{"auto": "", "native": gangapi.Native, "resources": gangapi.Resources} {
		if got, err := gangapi.Parse(text); err != nil || got != want {
			t.Errorf("%s is %q (%v)", text, got, err)
		}
	}
	if _, err := gangapi.Parse(
		"native-v1",
	); err == nil ||
		!strings.Contains(err.Error(), "use auto, native or resources") {
		t.Errorf("native-v1: %v", err)
	}
}

// A pod joins by field and label where the name fits into a label. The field wins: it cannot be changed.
func TestJoin(t *testing.T) {
	long := strings.Repeat("x", gangapi.LongestName+1)
	for _, name := range []string{"gang", long} {
		pod := &corev1.Pod{}
		gangapi.Join(&pod.ObjectMeta, &pod.Spec, name)
		if got := gangapi.GroupOf(pod.ObjectMeta, pod.Spec); got != name {
			t.Errorf("joined %s, and is in %s", name, got)
		}
		if _, labeled := pod.Labels[gangapi.Label]; labeled != (name != long) {
			t.Errorf("%s: labels %v", name, pod.Labels)
		}
		pod.Labels = map[string]string{gangapi.Label: "other"}
		if got := gangapi.GroupOf(pod.ObjectMeta, pod.Spec); got != name {
			t.Errorf("a label took the pod from %s to %s", name, got)
		}
	}
}

// Moved retains a gang's metadata and conditions, and drops the fields that only one API has or fills in itself.
func TestMoved(t *testing.T) {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:            "gang",
			UID:             "1",
			ResourceVersion: "7",
			Annotations:     map[string]string{"lockstep.dev/queued-at": "then"},
			Finalizers:      []string{"kubernetes.io/podgroup-protection"},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			WorkloadRef: &schedulingv1beta1.WorkloadReference{WorkloadName: "gang"}, Priority: new(int32(7)),
			ResourceClaims: []schedulingv1beta1.PodGroupResourceClaim{{Name: "fabric"}},
		},
		Status: schedulingv1beta1.PodGroupStatus{
			Conditions: []metav1.Condition{
				{Type: "PodGroupInitiallyScheduled", Status: metav1.ConditionTrue},
			},
			ResourceClaimStatuses: []schedulingv1beta1.PodGroupResourceClaimStatus{{Name: "fabric"}},
		},
	}
	moved := gangapi.Moved(group, gangapi.Resources)
	switch {
	case moved.UID != "" || moved.ResourceVersion != "" || moved.Spec.Priority != nil,
		moved.Spec.WorkloadRef != nil || moved.Spec.ResourceClaims != nil || moved.Status.ResourceClaimStatuses != nil:
		t.Errorf("what belongs to the native API came along: %+v", moved)
	case moved.Annotations["lockstep.dev/queued-at"] != "then" || len(moved.Status.Conditions) != 1,
		len(moved.Finalizers) != 1 || moved.Finalizers[0] != gangapi.Finalizer:
		t.Errorf("what is known of the gang did not come along: %+v", moved)
	}
	if back := gangapi.Moved(group, gangapi.Native); back.Spec.WorkloadRef == nil || back.Spec.ResourceClaims == nil {
		t.Errorf("what the native API has was left behind: %+v", back.Spec)
	}
}
