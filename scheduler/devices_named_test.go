package scheduler_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

// cards is a resource that pods ask for by its name, and for which a class of devices stands.
const cards = corev1.ResourceName("example.com/card")

// extendedClasses are the classes, of which that of GPUs serves cards.
func extendedClasses() []runtime.Object {
	objects := classes()
	for _, o := range objects {
		if class, ok := o.(*resourcev1.DeviceClass); ok && class.Name == "gpu" {
			class.Spec.ExtendedResourceName = new(string(cards))
		}
	}
	return objects
}

// carded is a gang of which each member asks for four cards.
func carded(name string, size int) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := gang(name, size, "clique")
	for _, pod := range members {
		requests := pod.Spec.Containers[0].Resources.Requests
		delete(requests, gpu)
		requests[cards] = resource.MustParse("4")
		pod.Spec.Containers[0].Resources.Limits = requests
	}
	return group, members
}

// startNaming starts a scheduler that makes claims for extended resources: they get names as an API server gives them, and go with
// their pods.
func (c *cluster) startNaming(t *testing.T) {
	t.Helper()
	c.PrependReactor("create", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, _ := action.(clienttesting.CreateAction)
		if claim, ok := create.GetObject().(*resourcev1.ResourceClaim); ok && claim.Name == "" {
			claim.Name = "cards-of-" + claim.OwnerReferences[0].Name
			claim.UID = types.UID(claim.Name)
		}
		return false, nil, nil
	})
	c.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if gone, ok := action.(clienttesting.DeleteAction); ok {
			claims := c.ResourceV1().ResourceClaims(namespace)
			go func() {
				_ = claims.Delete(
					context.WithoutCancel(t.Context()),
					"cards-of-"+gone.GetName(),
					metav1.DeleteOptions{},
				)
			}()
		}
		return false, nil, nil
	})
	c.start(t)
}

// Nodes that publish cards offer none of the resource; nodes with an old device plugin offer it and publish nothing. The first clique
// has too few of both, the second has enough.
func TestMembersAskForDevicesByAResourceName(t *testing.T) {
	nodes := cliques(2, 4)
	objects := extendedClasses()
	for _, node := range nodes {
		count := 4
		switch node.Name {
		case "c0-n1":
			count = 3
		case "c0-n2":
			count = 0
		case "c1-n2":
			count = 0
			node.Status.Allocatable[cards] = resource.MustParse("4")
			node.Status.Capacity[cards] = resource.MustParse("4")
		}
		objects = append(objects, node, publishes(node, count, 0))
	}
	group, members := carded("train", 4)
	c := unstarted(t, objects...)
	c.startNaming(t)
	c.add(t, group, members)
	if got := c.waitBound(t, members); !slices.Equal(got, inClique(1, 4)) {
		t.Errorf("the gang is on %v", got)
	}
}

// All cards are taken by a gang that asked for them by name. A more important one that does so too has them instead.
func TestAGangTakesDevicesThatAnotherAskedForByName(t *testing.T) {
	objects := extendedClasses()
	for _, node := range cliques(1, 4) {
		objects = append(objects, node, publishes(node, 4, 0))
	}
	low, first := carded("low", 4)
	high, second := carded("high", 4)
	raise(low, first, 0)
	raise(high, second, 1000)
	c := unstarted(t, objects...)
	c.startNaming(t)
	c.add(t, low, first)
	c.waitBound(t, first)
	c.add(t, high, second)
	if got := c.waitBound(t, second); !slices.Equal(got, inClique(0, 4)) {
		t.Errorf("the important gang is on %v", got)
	}
}
