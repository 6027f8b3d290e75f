package importer

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet/devices"
)

// errLevel is the cause of a wish for a level that no node has.
var errLevel = errors.New("it asks for a level")

// claims are the resource claims of a snapshot. A scenario counts accelerators, so a pod's claims of accelerators
// become requests.
type claims struct {
	accelerator corev1.ResourceName
	there       map[types.NamespacedName]*resourcev1.ResourceClaim
	templates   map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
	classes     map[string]*resourcev1.DeviceClass
	published   map[deviceID]resourcev1.Device
	// counted has the claims that are counted already: a shared claim counts once.
	counted map[string]bool
	unknown []string
}

// deviceID names a device.
type deviceID struct{ driver, pool, device string }

func newClaims(snap *capture.Snapshot, accelerator corev1.ResourceName) *claims {
	c := &claims{
		accelerator: accelerator,
		there:       make(map[types.NamespacedName]*resourcev1.ResourceClaim),
		templates:   make(map[types.NamespacedName]*resourcev1.ResourceClaimTemplate),
		classes:     make(map[string]*resourcev1.DeviceClass),
		published:   make(map[deviceID]resourcev1.Device),
		counted:     make(map[string]bool),
	}
	for _, claim := range snap.ResourceClaims {
		c.there[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	}
	for _, template := range snap.ResourceClaimTemplates {
		c.templates[types.NamespacedName{Namespace: template.Namespace, Name: template.Name}] = template
	}
	for _, class := range snap.DeviceClasses {
		c.classes[class.Name] = class
	}
	for _, slice := range snap.ResourceSlices {
		for _, device := range slice.Spec.Devices {
			c.published[deviceID{slice.Spec.Driver, slice.Spec.Pool.Name, device.Name}] = device
		}
	}
	return c
}

// plain returns the pod with requests in place of claims. Claims that the scheduler made for extended resources are in
// the pod's requests already.
func (c *claims) plain(pod *corev1.Pod, group *schedulingv1beta1.PodGroup) *corev1.Pod {
	if len(pod.Spec.ResourceClaims) == 0 {
		return pod
	}
	var count int64
	for i := range pod.Spec.ResourceClaims {
		count += c.count(pod, group, &pod.Spec.ResourceClaims[i])
	}
	pod = pod.DeepCopy()
	pod.Spec.ResourceClaims = nil
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources.Claims = nil
	}
	if len(pod.Spec.Containers) > 0 && count > 0 {
		into := &pod.Spec.Containers[0].Resources.Requests
		if *into == nil {
			*into = make(corev1.ResourceList)
		}
		has := (*into)[c.accelerator]
		has.Add(*resource.NewQuantity(count, resource.DecimalSI))
		(*into)[c.accelerator] = has
	}
	return pod
}

// count returns the number of accelerators that one of the pod's claims holds or requests.
func (c *claims) count(pod *corev1.Pod, group *schedulingv1beta1.PodGroup, entry *corev1.PodResourceClaim) int64 {
	owner := pod.Namespace + "/" + pod.Name
	name, _, err := resourceclaim.Name(pod, entry)
	if err == nil && name == nil { // none is needed
		return 0
	}
	if err == nil {
		claim := c.there[types.NamespacedName{Namespace: pod.Namespace, Name: *name}]
		return c.once("claim "+pod.Namespace+"/"+*name, func(what string) int64 {
			switch {
			case claim == nil:
				return c.fail(what + ", which is not in the snapshot")
			case claim.Status.Allocation != nil:
				return c.held(what, claim)
			}
			return c.wanted(what, claim.Spec)
		})
	}
	if group != nil && entry.ResourceClaimTemplateName != nil {
		shared := func(of schedulingv1beta1.PodGroupResourceClaim) bool {
			return of.Name == entry.Name && of.ResourceClaimTemplateName != nil &&
				*of.ResourceClaimTemplateName == *entry.ResourceClaimTemplateName
		}
		if slices.ContainsFunc(group.Spec.ResourceClaims, shared) {
			owner = group.Namespace + "/" + group.Name
		}
	}
	return c.once("claim "+entry.Name+" of "+owner, func(what string) int64 {
		if entry.ResourceClaimTemplateName == nil {
			return c.fail(what + ", of which there is no template")
		}
		template := c.templates[types.NamespacedName{Namespace: pod.Namespace, Name: *entry.ResourceClaimTemplateName}]
		if template == nil {
			return c.fail(what + ", whose template is not in the snapshot")
		}
		return c.wanted(what, template.Spec.Spec)
	})
}

// once counts a claim for the first pod that has it.
func (c *claims) once(what string, count func(what string) int64) int64 {
	if c.counted[what] {
		return 0
	}
	c.counted[what] = true
	return count(what)
}

// held returns the number of whole accelerators that are allocated to a claim.
func (c *claims) held(what string, claim *resourcev1.ResourceClaim) int64 {
	var sum int64
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.AdminAccess != nil && *result.AdminAccess {
			continue
		}
		device, known := c.published[deviceID{result.Driver, result.Pool, result.Device}]
		switch {
		case !known:
			return c.fail(what + ", which has a device that no driver publishes")
		case devices.IsAccelerator(result.Driver, device):
			sum++
		case devices.IsPart(result.Driver, device):
			return c.fail(what + ", which has a part of an accelerator")
		}
	}
	return sum
}

// wanted returns the number of accelerators that an unallocated claim requests. Of alternatives the first counts.
func (c *claims) wanted(what string, spec resourcev1.ResourceClaimSpec) int64 {
	var sum int64
	for _, request := range spec.Devices.Requests {
		class, count, mode := "", int64(0), resourcev1.DeviceAllocationModeExactCount
		switch {
		case request.Exactly != nil && request.Exactly.AdminAccess != nil && *request.Exactly.AdminAccess:
			continue
		case request.Exactly != nil:
			class, count, mode = request.Exactly.DeviceClassName, request.Exactly.Count, request.Exactly.AllocationMode
		case len(request.FirstAvailable) > 0:
			first := request.FirstAvailable[0]
			class, count, mode = first.DeviceClassName, first.Count, first.AllocationMode
		}
		if mode == "" {
			mode = resourcev1.DeviceAllocationModeExactCount
		}
		switch {
		case !c.standsForAccelerators(class):
		case mode != resourcev1.DeviceAllocationModeExactCount:
			return c.fail(what + ", which asks for all of a node")
		default:
			sum += max(count, 1)
		}
	}
	return sum
}

// standsForAccelerators reports whether devices of the class are whole accelerators: the class serves the accelerator's
// resource, or is that of a known driver.
func (c *claims) standsForAccelerators(name string) bool {
	class := c.classes[name]
	if class != nil && class.Spec.ExtendedResourceName != nil {
		return *class.Spec.ExtendedResourceName == string(c.accelerator)
	}
	return devices.ServesAccelerators(name)
}

func (c *claims) fail(what string) int64 {
	c.unknown = append(c.unknown, what)
	return 0
}

// notes names the claims whose accelerators cannot be counted.
func (c *claims) notes() []string {
	if len(c.unknown) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("what %d claims have is not counted: %s", len(c.unknown), named(c.unknown))}
}
