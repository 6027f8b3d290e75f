package reservation_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/reservation"
)

// at is some minutes after the day began.
func at(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 11, 22, 0, minute, 0, 0, time.UTC))
}

func gang(name string, priority int32, minute int) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: at(minute)},
		Spec:       schedulingv1beta1.PodGroupSpec{Priority: &priority},
	}
}

func pod(priority int32, minute int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", CreationTimestamp: at(minute)},
		Spec:       corev1.PodSpec{Priority: &priority},
	}
}

// One gang has the place: the first in the order of the queue, whoever asked first.
func TestTheFirstOfTheQueueHasThePlace(t *testing.T) {
	freed := 0
	book := reservation.NewBook(func() { freed++ })
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
	first, second, important := gang("first", 0, 1), gang("second", 0, 2), gang("important", 10, 3)
	for _, group := range []*schedulingv1beta1.PodGroup{second, first, second} {
		book.Reserve(reservation.Head{Group: group, Rooms: map[string]corev1.ResourceList{group.Name: room}})
	}
	if head := book.Before(second); head == nil || head.Group != first {
		t.Errorf("before the second is %v", head)
	}
	for _, group := range []*schedulingv1beta1.PodGroup{first, important, gang("earlier", 0, 0)} {
		if head := book.Before(group); head != nil {
			t.Errorf("%s is before %s", head.Group.Name, group.Name)
		}
	}
	for _, c := range []struct {
		node  string
		pod   *corev1.Pod
		wants bool
	}{
		{"first", pod(0, 5), true},
		{"second", pod(0, 5), false},
		{"first", pod(1, 5), false},
		{"first", pod(0, 0), false},
	} {
		if got := book.On(c.node, c.pod) != nil; got != c.wants {
			t.Errorf(
				"a pod of priority %d has to leave room on %s: %t, want %t",
				*c.pod.Spec.Priority,
				c.node,
				got,
				c.wants,
			)
		}
	}
	book.Drop(second.UID)
	if freed != 0 || book.Before(second) == nil {
		t.Error("the place of one gang was given back by another")
	}
	book.Drop(first.UID)
	if freed != 1 || book.Before(second) != nil || book.On("first", pod(0, 5)) != nil {
		t.Errorf("the place was not given back, or told %d times", freed)
	}
}
