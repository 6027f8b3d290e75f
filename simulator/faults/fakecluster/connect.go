package fakecluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// connectLag is the delay of NVIDIA's driver.
const connectLag = 100 * time.Millisecond

// channelClaim is a pod's name of its claim for a channel.
const channelClaim = "compute-domain-channel"

// domains is NVIDIA's driver for ComputeDomains: package nvlink decides, and this does it.
type domains struct {
	World

	due    bool
	memory nvlink.Memory
}

func (d *domains) changed(e apiserver.Event) {
	switch e.Kind {
	case "ComputeDomain", "Node", "Pod", "ResourceClaim", "ResourceClaimTemplate":
		d.soon(d.Delay(connectLag, "domains"))
	}
}

func (d *domains) soon(after time.Duration) {
	if d.due {
		return
	}
	d.due = true
	d.After(after, func() {
		d.due = false
		d.step()
	})
}

func (d *domains) step() {
	actions, memory, next := nvlink.Decide(
		d.look().See(), d.memory, d.Now(), nvlink.Settings{Quickest: time.Second, Slowest: 20 * time.Second})
	d.memory = memory
	for _, action := range actions {
		d.act(action)
	}
	if next > 0 {
		d.soon(next)
	}
}

func (d *domains) look() nvlink.Cluster {
	seen := nvlink.Cluster{
		Claims:    make(map[types.NamespacedName]*resourcev1.ResourceClaim),
		Templates: make(map[types.NamespacedName]*resourcev1.ResourceClaimTemplate),
		Published: make(map[string]bool),
	}
	for _, o := range d.Server.List("ComputeDomain", "") {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		must(err)
		seen.Domains = append(seen.Domains, &unstructured.Unstructured{Object: content})
	}
	seen.Nodes = listOf[*corev1.Node](d.Server, "Node")
	for _, pod := range listOf[*corev1.Pod](d.Server, "Pod") {
		if Connects(pod) {
			seen.Pods = append(seen.Pods, pod)
		}
	}
	for _, claim := range listOf[*resourcev1.ResourceClaim](d.Server, "ResourceClaim") {
		seen.Claims[client.ObjectKeyFromObject(claim)] = claim
	}
	for _, made := range listOf[*resourcev1.ResourceClaimTemplate](d.Server, "ResourceClaimTemplate") {
		seen.Templates[client.ObjectKeyFromObject(made)] = made
	}
	for _, o := range d.Server.List("ResourceSlice", "") {
		seen.Published[o.GetName()] = true
	}
	return seen
}

func listOf[T client.Object](s *apiserver.Server, kind string) []T {
	var out []T
	for _, o := range s.List(kind, "") {
		if typed, ok := o.(T); ok {
			out = append(out, typed)
		}
	}
	return out
}

// Connects reports whether a pod claims a channel.
func Connects(pod *corev1.Pod) bool {
	return slices.ContainsFunc(
		pod.Spec.ResourceClaims,
		func(c corev1.PodResourceClaim) bool { return c.Name == channelClaim },
	)
}

// prepared reports whether the driver lets a pod start.
func prepared(pod *corev1.Pod) bool {
	return !Connects(pod) || pod.Annotations[nvlink.PreparedAnnotation] == nvlink.Prepared
}

func (d *domains) act(a nvlink.Action) {
	switch a.Verb {
	case nvlink.Hold:
		d.change(
			"ComputeDomain",
			a.Key,
			func(o client.Object) { o.SetFinalizers(append(o.GetFinalizers(), nvlink.Finalizer)) },
		)
	case nvlink.LetGo:
		d.change("ComputeDomain", a.Key, func(o client.Object) {
			o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == nvlink.Finalizer }))
		})
	case nvlink.Make:
		template, err := nvlink.Template(a.Domain)
		must(err)
		if _, err := d.Server.Get(
			"ResourceClaimTemplate",
			client.ObjectKeyFromObject(template),
		); err != nil { // else an earlier domain's template is deleted first
			_, err := d.Server.Create(template)
			must(err)
		}
	case nvlink.Remove:
		must(
			d.Server.Delete(
				"ResourceClaimTemplate",
				types.NamespacedName{Namespace: a.Key.Namespace, Name: a.Domain.Template},
				noGrace(),
			),
		)
	case nvlink.Publish:
		node, err := d.Server.Get("Node", a.Key)
		must(err)
		if of, ok := node.(*corev1.Node); ok {
			_, err := d.Server.Create(nvlink.Slice(of))
			must(err)
		}
	case nvlink.Withdraw:
		must(
			d.Server.Delete(
				"ResourceSlice",
				types.NamespacedName{Name: nvlink.SliceName(a.Key.Name)},
				metav1.DeleteOptions{},
			),
		)
	case nvlink.Label, nvlink.Unlabel:
		d.Log("node %s is to %s for %s", a.Key.Name, a.Verb, a.Domain.UID)
		d.change("Node", a.Key, func(o client.Object) { label(o, a) })
	case nvlink.Prepare:
		d.change("Pod", a.Key, func(o client.Object) {
			o.SetAnnotations(with(o.GetAnnotations(), nvlink.PreparedAnnotation, nvlink.Prepared))
		})
	case nvlink.Refuse:
		d.Log("kubelet does not start %s: %s", a.Key, a.Reason)
	}
}

func label(o client.Object, a nvlink.Action) {
	labels := with(o.GetLabels(), nvlink.DomainLabel, string(a.Domain.UID))
	if a.Verb == nvlink.Unlabel {
		delete(labels, nvlink.DomainLabel)
	}
	o.SetLabels(labels)
}

func with(of map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range of {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// change changes an object that is there.
func (d *domains) change(kind string, name types.NamespacedName, change func(client.Object)) {
	found, err := d.Server.Get(kind, name)
	if err != nil {
		return
	}
	if next, ok := found.DeepCopyObject().(client.Object); ok {
		change(next)
		_, err := d.Server.Update(next, "")
		must(err)
	}
}
