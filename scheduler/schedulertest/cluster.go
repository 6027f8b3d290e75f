// Package schedulertest runs kube-scheduler with Lockstep's plugins against a fake API server, and makes the nodes,
// PodGroups, pods and claims that its tests need. A test creates a cluster, adds a gang and waits for the result:
//
//	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4))
//	group, members := schedulertest.Gang("train", 4, "clique")
//	c.Create(t, group, members)
//	nodes := c.WaitBound(t, members)
//
// A folder whose tests import this package links all of kube-scheduler.
package schedulertest

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest/fakeserver"
)

// Namespace is the namespace of all objects of this package.
const Namespace = "default"

// growWatches makes room for bursts: a fake watch panics when its reader falls behind, a real one slows down.
//
//nolint:gochecknoglobals // the setting is a global of apimachinery
var growWatches = sync.OnceFunc(func() { watch.DefaultChanSize = 1 << 15 })

func podResource() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("pods") }

// Cluster is a fake API server and the scheduler that talks to it.
type Cluster struct {
	*fake.Clientset

	// plugins are the enabled plugins of the scheduler that was started last.
	plugins *schedulerconfig.Plugins
	// stop ends the scheduler that runs.
	stop context.CancelFunc

	mu sync.Mutex
	// bound maps the name of each bound pod to its node.
	bound map[string]string
}

// NewCluster starts a scheduler that lists the objects, in no particular order. An argument is an object or a slice of
// objects. The scheduler ends with the test.
func NewCluster(tb testing.TB, objects ...any) *Cluster {
	tb.Helper()
	c := NewUnstartedCluster(tb, objects...)
	c.Start(tb)
	return c
}

// NewUnstartedCluster returns a cluster without a scheduler. Start adds one.
func NewUnstartedCluster(tb testing.TB, objects ...any) *Cluster {
	tb.Helper()
	growWatches()
	c := &Cluster{Clientset: fake.NewSimpleClientset(), stop: func() {}, bound: make(map[string]string)}
	c.PrependReactor("*", "*", clienttesting.ObjectReaction(&versionedTracker{ObjectTracker: c.Tracker()}))
	c.PrependReactor("create", "pods", c.Bind)
	fakeserver.HonorFields(c.Clientset)
	c.store(tb, objects...)
	return c
}

// store puts objects into the store, past the API. An argument is an object or a slice of objects.
func (c *Cluster) store(tb testing.TB, objects ...any) {
	tb.Helper()
	for _, o := range objects {
		if list := reflect.ValueOf(o); list.Kind() == reflect.Slice {
			for i := range list.Len() {
				c.store(tb, list.Index(i).Interface())
			}
			continue
		}
		object, ok := o.(runtime.Object)
		if !ok {
			tb.Fatalf("a %T is neither an object nor a slice of objects", o)
		}
		if err := c.Tracker().Add(object); err != nil {
			tb.Fatal(err)
		}
	}
}

// Objects converts objects of one kind, to collect objects of several kinds in one slice.
func Objects[T runtime.Object](list ...T) []runtime.Object {
	out := make([]runtime.Object, len(list))
	for i, o := range list {
		out[i] = o
	}
	return out
}

// Bind is the reactor of the binding subresource. It sets the pod's node, and fails for a pod that is bound already.
func (c *Cluster) Bind(action clienttesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clienttesting.CreateAction)
	if !ok || create.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding, _ := create.GetObject().(*corev1.Binding)
	object, err := c.Tracker().Get(create.GetResource(), binding.Namespace, binding.Name)
	if err != nil {
		return true, nil, fmt.Errorf("binding %s: %w", binding.Name, err)
	}
	pod, _ := object.DeepCopyObject().(*corev1.Pod)
	pod.Spec.NodeName = binding.Target.Name
	pod.Status.Conditions = append(slices.DeleteFunc(pod.Status.Conditions, func(of corev1.PodCondition) bool {
		return of.Type == corev1.PodScheduled
	}), corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, twice := c.bound[pod.Name]; twice {
		return true, nil, fmt.Errorf("%s is bound to %s already", pod.Name, at)
	}
	c.bound[pod.Name] = pod.Spec.NodeName
	return true, binding, stored(c.Tracker().Update(create.GetResource(), pod, pod.Namespace))
}

// RecordBinding records the node of a pod. Only tests that replace Bind by a reactor of their own need it.
func (c *Cluster) RecordBinding(pod, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bound[pod] = node
}

// NodeOf returns the node to which the scheduler bound a pod, "" for a pod that it did not bind.
func (c *Cluster) NodeOf(pod string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bound[pod]
}

// Bindings returns the nodes of all pods that the scheduler bound, by pod name.
func (c *Cluster) Bindings() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.bound)
}

// Plugins returns the enabled plugins of the scheduler that was started last.
func (c *Cluster) Plugins() *schedulerconfig.Plugins { return c.plugins }
