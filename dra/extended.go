package dra

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostExtended is the number of extended resources backed by device classes that one pod may request: each may be
// offered by a node itself or not, so a demand has a variant for every combination.
const mostExtended = 4

// ResourceClasses returns the class that stands for each extended resource: the one that names it, the newest of
// several and of equally old ones the first by name, and each class for the resource that is made of its own name.
func ResourceClasses(all []*resourcev1.DeviceClass) map[corev1.ResourceName]*resourcev1.DeviceClass {
	found := map[corev1.ResourceName]*resourcev1.DeviceClass{}
	for _, c := range all {
		found[corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix+c.Name)] = c
		if c.Spec.ExtendedResourceName == nil {
			continue
		}
		name := corev1.ResourceName(*c.Spec.ExtendedResourceName)
		if old := found[name]; old == nil || preferred(c, old) {
			found[name] = c
		}
	}
	return found
}

// preferred reports whether a stands for their common resource rather than b.
func preferred(a, b *resourcev1.DeviceClass) bool {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// withExtended makes the demand of a pod's own claims and its extended resources.
func (f *Fitter) withExtended(objects Objects, pod *corev1.Pod, own []*resourcev1.ResourceClaim) *Demand {
	backed := map[corev1.ResourceName]*resourcev1.DeviceClass{}
	for _, c := range allContainers(pod) {
		for name, q := range c.Resources.Requests {
			if class := extendedClass(objects, name); class != nil && !q.IsZero() {
				backed[name] = class
			}
		}
	}
	d := f.Demand(objects.Class, own...)
	if len(backed) == 0 || d.Fault != "" {
		return d
	}
	names := sortedKeys(backed)
	if len(names) > mostExtended {
		return &Demand{Fault: fmt.Sprintf(
			"pod %s asks for %d extended resources that device classes stand for; at most %d are supported, use claims instead",
			pod.Name,
			len(names),
			mostExtended,
		)}
	}
	whole := &Demand{Extended: names, without: map[string]*Demand{}}
	for mask := range 1 << len(names) {
		var offered []string
		lacking := maps.Clone(backed)
		for i, name := range names {
			if mask&(1<<i) != 0 {
				offered = append(offered, string(name))
				delete(lacking, name)
			}
		}
		variant := d
		if len(lacking) > 0 {
			variant = f.Demand(objects.Class, append(slices.Clone(own), extendedClaim(pod, lacking))...)
		}
		if variant.Fault != "" {
			return variant
		}
		whole.without[strings.Join(offered, ",")] = variant
	}
	all := whole.without[""]
	whole.Claims, whole.terms = all.Claims, all.terms
	return whole
}

// extendedClass returns the class that stands for a resource, nil if it is none of the extended ones or none does.
func extendedClass(objects Objects, name corev1.ResourceName) *resourcev1.DeviceClass {
	text := string(name)
	native := !strings.Contains(text, "/") || strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix)
	if native && !strings.HasPrefix(text, resourcev1.ResourceDeviceClassPrefix) {
		return nil
	}
	return objects.Extended(name)
}

// container is a container of a pod and whether it ends before the next ones start.
type container struct {
	*corev1.Container

	brief bool
}

func allContainers(pod *corev1.Pod) []container {
	var all []container
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		all = append(all, container{c, !sidecar})
	}
	for i := range pod.Spec.Containers {
		all = append(all, container{&pod.Spec.Containers[i], false})
	}
	return all
}

// extendedClaim is the claim that the scheduler makes for extended resources: for each a request of every container
// that stays, and one for the devices that the neediest container that ends early lacks when it uses those of the
// containers that stay after it.
func extendedClaim(pod *corev1.Pod, backed map[corev1.ResourceName]*resourcev1.DeviceClass) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name + "-extended-resources",
	}}
	all := allContainers(pod)
	for _, name := range sortedKeys(backed) {
		add := func(container int, count int64) {
			if count <= 0 {
				return
			}
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourcev1.DeviceRequest{
				Name: fmt.Sprintf("container-%d-request-%d", container, requestIndex(all[container], name)),
				Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: backed[name].Name,
					AllocationMode:  resourcev1.DeviceAllocationModeExactCount,
					Count:           count,
				},
			})
		}
		most, neediest := int64(0), 0
		later := int64(0)
		for i, c := range slices.Backward(all) {
			q := c.Resources.Requests[name]
			if !c.brief {
				later += q.Value()
				add(i, q.Value())
				continue
			}
			if lacks := q.Value() - later; lacks >= most {
				most, neediest = lacks, i
			}
		}
		add(neediest, most)
	}
	slices.SortFunc(claim.Spec.Devices.Requests, func(a, b resourcev1.DeviceRequest) int {
		return cmp.Compare(a.Name, b.Name)
	})
	return claim
}

// requestIndex is the place of a resource among those that the container requests.
func requestIndex(c container, name corev1.ResourceName) int {
	i, _ := slices.BinarySearch(sortedKeys(c.Resources.Requests), name)
	return i
}
