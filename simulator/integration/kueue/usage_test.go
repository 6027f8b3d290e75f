package kueue_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// usage is a quantity of each resource, canonical as text, by flavor and resource: "spot nvidia.com/gpu".
type usage map[string]string

// quotaUsed returns the usage of a ClusterQueue's quota that Kueue has counted, without zeros.
func quotaUsed(t *testing.T, queue string) usage {
	t.Helper()
	object, err := shared.Dynamic.Resource(queues).Get(t.Context(), queue, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used := usage{}
	flavors, _, _ := unstructured.NestedSlice(object.Object, "status", "flavorsUsage")
	for _, entry := range flavors {
		flavor := entry.(map[string]any)
		resources, _, _ := unstructured.NestedSlice(flavor, "resources")
		for _, entry := range resources {
			of := entry.(map[string]any)
			if total := resource.MustParse(fmt.Sprint(of["total"])); !total.IsZero() {
				used[fmt.Sprintf("%v %v", flavor["name"], of["name"])] = canonical(total)
			}
		}
	}
	return used
}

// podsUse returns the requests of a namespace's running pods, for the resources that a queue covers; flavorOf names the
// flavor of a node.
func podsUse(t *testing.T, namespace string, covered []string, flavorOf func(node string) string) usage {
	t.Helper()
	pods, err := shared.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]resource.Quantity{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		requested := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		requested[corev1.ResourcePods] = resource.MustParse("1")
		for _, name := range covered {
			if quantity := requested[corev1.ResourceName(name)]; !quantity.IsZero() {
				key := flavorOf(pod.Spec.NodeName) + " " + name
				sum := sums[key]
				sum.Add(quantity)
				sums[key] = sum
			}
		}
	}
	used := usage{}
	for key, sum := range sums {
		used[key] = canonical(sum)
	}
	return used
}

// expectExact waits until the quota that Kueue counts equals the requests of running pods, and both are as wanted.
func expectExact(
	t *testing.T, when, queue, namespace string, covered []string, flavorOf func(node string) string, want usage,
) {
	t.Helper()
	var counted, running usage
	holds := func() bool {
		counted, running = quotaUsed(t, queue), podsUse(t, namespace, covered, flavorOf)
		return maps.Equal(counted, want) && maps.Equal(running, want)
	}
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: Kueue counts %v, and pods request %v, want %v", when, counted, running, want)
		}
	}
	t.Logf("%s: Kueue counts %v, running pods request the same", when, counted)
}

// canonical prints a quantity so that equal ones print alike.
func canonical(quantity resource.Quantity) string {
	return resource.NewMilliQuantity(quantity.MilliValue(), resource.DecimalSI).String()
}

// apply creates the objects of some YAML, or changes them.
func apply(t *testing.T, text string) {
	t.Helper()
	applyOn(t, shared.Cluster, text)
}

// applyOn is apply for another cluster than the shared one.
func applyOn(t *testing.T, on *cluster.Cluster, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := on.Apply(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}
