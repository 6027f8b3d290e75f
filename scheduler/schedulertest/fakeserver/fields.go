// Package fakeserver makes a fake clientset behave like an API server where a scheduler sees the difference.
package fakeserver

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// HonorFields makes the clientset honor the field selectors of pods, as Reaction and Watch do.
func HonorFields(client *fake.Clientset) {
	client.PrependReactor("list", "pods", Reaction(client.Tracker()))
	client.PrependWatchReactor("pods", func(action clienttesting.Action) (bool, watch.Interface, error) {
		events, err := Watch(client.Tracker(), action)
		return true, events, err
	})
}

// Reaction serves requests from a store, and honors the field selectors of lists of pods.
func Reaction(store clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	plain := clienttesting.ObjectReaction(store)
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		asked, ok := action.(clienttesting.ListAction)
		if !ok || action.GetResource() != podResource() {
			return plain(action)
		}
		all, err := list(store, action.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		all.Items = slices.DeleteFunc(all.Items, func(pod corev1.Pod) bool {
			return !selects(fieldsOf(asked.GetListRestrictions().Fields), &pod)
		})
		return true, all, nil
	}
}

// Watch serves a watch from a store, and honors the field selectors of pods as an API server does: a watch whose
// selector does not match a pod any more gets a deletion with the pod's earlier state. kube-scheduler's informer
// selects pods that have not ended.
func Watch(store clienttesting.ObjectTracker, action clienttesting.Action) (watch.Interface, error) {
	events, err := store.Watch(action.GetResource(), action.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", action.GetResource().Resource, err)
	}
	asked, ok := action.(clienttesting.WatchAction)
	if !ok || action.GetResource() != podResource() {
		return events, nil
	}
	all, err := list(store, action.GetNamespace())
	if err != nil {
		return nil, err
	}
	view := &selection{selector: fieldsOf(asked.GetWatchRestrictions().Fields), shown: make(map[string]*corev1.Pod)}
	for i := range all.Items {
		view.event(watch.Event{Type: watch.Added, Object: &all.Items[i]})
	}
	return watch.Filter(events, view.event), nil
}

func podResource() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("pods") }

// fieldsOf returns the selector of a request, one that selects everything for none.
func fieldsOf(selector fields.Selector) fields.Selector {
	if selector == nil {
		return fields.Everything()
	}
	return selector
}

func list(store clienttesting.ObjectTracker, namespace string) (*corev1.PodList, error) {
	object, err := store.List(podResource(), corev1.SchemeGroupVersion.WithKind("Pod"), namespace)
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	all, ok := object.(*corev1.PodList)
	if !ok {
		return nil, fmt.Errorf("the list of pods is a %T", object)
	}
	return all, nil
}

// selection holds the objects that a watch with a selector has shown.
type selection struct {
	selector fields.Selector

	mu    sync.Mutex
	shown map[string]*corev1.Pod
}

// event turns an event of the store into the watch's, false for none.
func (s *selection) event(e watch.Event) (watch.Event, bool) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok {
		return e, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := pod.Namespace + "/" + pod.Name + "/" + string(pod.UID)
	before, known := s.shown[key]
	switch selected := e.Type != watch.Deleted && selects(s.selector, pod); {
	case selected && known:
		s.shown[key] = pod
		return watch.Event{Type: watch.Modified, Object: pod}, true
	case selected:
		s.shown[key] = pod
		return watch.Event{Type: watch.Added, Object: pod}, true
	case known:
		delete(s.shown, key)
		last := before.DeepCopy()
		last.ResourceVersion = pod.ResourceVersion
		return watch.Event{Type: watch.Deleted, Object: last}, true
	}
	return e, false
}

// selects matches the fields of a pod that an API server offers and a scheduler selects by.
func selects(selector fields.Selector, pod *corev1.Pod) bool {
	phase := pod.Status.Phase
	if phase == "" { // the API server's default
		phase = corev1.PodPending
	}
	return selector.Matches(fields.Set{
		"metadata.name":      pod.Name,
		"metadata.namespace": pod.Namespace,
		"spec.nodeName":      pod.Spec.NodeName,
		"spec.schedulerName": pod.Spec.SchedulerName,
		"status.phase":       string(phase),
	})
}
