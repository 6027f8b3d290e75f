package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	schedulingv1beta1client "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"
	"k8s.io/client-go/rest"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
)

// client is a client without an API server. It records calls, which the world carries out when the cycle is over: a
// handler that is called in the middle of a cycle would change the objects that the cycle reads. All other calls fail.
type client struct {
	kubernetes.Interface

	pods *stepped.Informer
	mu   sync.Mutex
	made calls
}

// calls are the requests to the client.
type calls struct {
	bound     []bound
	deleted   []types.NamespacedName
	nominated []nominated
}

type bound struct {
	pod  types.NamespacedName
	node string
}

type nominated struct {
	pod  types.NamespacedName
	node string
}

// errNowhere is the answer to every unexpected call.
var errNowhere = errors.New("a scheduler that is played has no API server")

// nowhere is a connection that leads nowhere.
type nowhere struct{}

// RoundTrip fails.
func (nowhere) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNowhere }

func newClient(pods *stepped.Informer) (*client, error) {
	none, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "localhost"}, &http.Client{Transport: nowhere{}})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &client{Interface: none, pods: pods}, nil
}

// take returns the calls since the last take. Calls of one kind are sorted by name, since members are bound in
// goroutines of their own.
func (c *client) take() calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := c.made
	c.made = calls{}
	slices.SortStableFunc(made.bound, func(a, b bound) int { return compare(a.pod, b.pod) })
	slices.SortStableFunc(made.deleted, compare)
	slices.SortStableFunc(made.nominated, func(a, b nominated) int { return compare(a.pod, b.pod) })
	return made
}

func compare(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// CoreV1 offers pods.
func (c *client) CoreV1() corev1client.CoreV1Interface {
	return coreClient{c.Interface.CoreV1(), c}
}

// SchedulingV1beta1 offers PodGroups.
func (c *client) SchedulingV1beta1() schedulingv1beta1client.SchedulingV1beta1Interface {
	return schedulingClient{c.Interface.SchedulingV1beta1()}
}

type coreClient struct {
	corev1client.CoreV1Interface

	of *client
}

// Pods offers the calls that schedulers make on pods.
func (c coreClient) Pods(namespace string) corev1client.PodInterface {
	return podClient{c.CoreV1Interface.Pods(namespace), namespace, c.of}
}

type podClient struct {
	corev1client.PodInterface

	namespace string
	of        *client
}

func (p podClient) there(name string, uid *types.UID) (*corev1.Pod, error) {
	pod, ok := stepped.Get[*corev1.Pod](p.of.pods, types.NamespacedName{Namespace: p.namespace, Name: name})
	if !ok {
		return nil, fmt.Errorf("looking for a pod: %w", apierrors.NewNotFound(corev1.Resource("pods"), name))
	}
	if uid != nil && *uid != pod.UID {
		other := apierrors.NewConflict(corev1.Resource("pods"), name, errors.New("it is another pod of that name"))
		return nil, fmt.Errorf("looking for a pod: %w", other)
	}
	return pod, nil
}

// Bind records the binding of a pod to its node.
func (p podClient) Bind(_ context.Context, b *corev1.Binding, _ metav1.CreateOptions) error {
	if _, err := p.there(b.Name, &b.UID); err != nil {
		return err
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	name := types.NamespacedName{Namespace: p.namespace, Name: b.Name}
	p.of.made.bound = append(p.of.made.bound, bound{name, b.Target.Name})
	return nil
}

// Delete records the deletion of a pod.
func (p podClient) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	var uid *types.UID
	if o.Preconditions != nil {
		uid = o.Preconditions.UID
	}
	if _, err := p.there(name, uid); err != nil {
		return err
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.made.deleted = append(p.of.made.deleted, types.NamespacedName{Namespace: p.namespace, Name: name})
	return nil
}

// Patch records nominations and conditions. Annotations are for users, and for controllers that are not here.
// Conditions are changed in place: a handler that receives them would do nothing, and the scheduler would write those
// that it does not find again for each member at each refusal.
func (p podClient) Patch(
	_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string,
) (*corev1.Pod, error) {
	pod, err := p.there(name, nil)
	if err != nil {
		return nil, err
	}
	var patch struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
		Status map[string]json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("reading a patch of pod %s: %w", name, err)
	}
	if uid := patch.Metadata.UID; uid != "" && uid != pod.UID {
		return p.there(name, &uid)
	}
	if raw, ok := patch.Status["conditions"]; ok {
		var conditions []corev1.PodCondition
		if err := json.Unmarshal(raw, &conditions); err != nil {
			return nil, fmt.Errorf("reading the conditions of pod %s: %w", name, err)
		}
		for i := range conditions {
			podutil.UpdatePodCondition(&pod.Status, &conditions[i])
		}
	}
	if raw, ok := patch.Status["nominatedNodeName"]; ok {
		var node *string
		if err := json.Unmarshal(raw, &node); err != nil {
			return nil, fmt.Errorf("reading the nomination of pod %s: %w", name, err)
		}
		n := nominated{pod: types.NamespacedName{Namespace: p.namespace, Name: name}}
		if node != nil {
			n.node = *node
		}
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		p.of.made.nominated = append(p.of.made.nominated, n)
	}
	return pod, nil
}

// List lists the pods of the namespace, by name.
func (p podClient) List(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
	list := &corev1.PodList{}
	for _, o := range p.of.pods.GetStore().List() {
		if pod, ok := o.(*corev1.Pod); ok && pod.Namespace == p.namespace {
			list.Items = append(list.Items, *pod)
		}
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

type schedulingClient struct {
	schedulingv1beta1client.SchedulingV1beta1Interface
}

// PodGroups offers the calls that schedulers make on PodGroups.
func (c schedulingClient) PodGroups(namespace string) schedulingv1beta1client.PodGroupInterface {
	return groupClient{c.SchedulingV1beta1Interface.PodGroups(namespace)}
}

type groupClient struct {
	schedulingv1beta1client.PodGroupInterface
}

// Patch does nothing: schedulers write conditions for people only.
func (groupClient) Patch(
	context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string,
) (*schedulingv1beta1.PodGroup, error) {
	return &schedulingv1beta1.PodGroup{}, nil
}
