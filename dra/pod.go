package dra

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Objects finds the objects that pods refer to. A missing object is nil.
type Objects interface {
	Claim(namespace, name string) *resourcev1.ResourceClaim
	Template(namespace, name string) *resourcev1.ResourceClaimTemplate
	Class(name string) *resourcev1.DeviceClass
	// Extended is the class that stands for an extended resource (see ResourceClasses).
	Extended(name corev1.ResourceName) *resourcev1.DeviceClass
}

// PodDevices holds the constraints of a pod's claims on its nodes.
type PodDevices struct {
	// Demand is the pod's own demand. Its Fault reports the fault of any of the pod's claims.
	Demand *Demand
	// Shared are claims without an allocation that other pods may use too, those of the pod's group among them: see
	// Choices. Their UIDs show which pods use the same one.
	Shared []*resourcev1.ResourceClaim
	// Selectors are those of the claims that are allocated already: the pod fits only on nodes that all of them match.
	Selectors []*corev1.NodeSelector
}

// ReadPod reads the claims of a pod; group is its PodGroup, nil if it has none or the cluster does not give claims to
// PodGroups. Claims that are still to be created from a template are read from the template. alone are the UIDs of
// named claims that no other pod of the question uses: they belong to the pod's own demand.
func (f *Fitter) ReadPod(
	objects Objects, pod *corev1.Pod, group *schedulingv1beta1.PodGroup, alone ...types.UID,
) PodDevices {
	r := reader{objects: objects, pod: pod, group: group, alone: alone}
	for i := range pod.Spec.ResourceClaims {
		if fault := r.read(&pod.Spec.ResourceClaims[i]); fault != "" {
			r.found.Demand = &Demand{Fault: fault}
			return r.found
		}
	}
	r.found.Demand = f.withExtended(objects, pod, r.own)
	return r.found
}

// reader collects the PodDevices of one pod.
type reader struct {
	objects Objects
	pod     *corev1.Pod
	group   *schedulingv1beta1.PodGroup
	alone   []types.UID
	own     []*resourcev1.ResourceClaim
	found   PodDevices
}

// read adds one entry of the pod's claims, and returns its fault as a sentence, "" for none.
func (r *reader) read(entry *corev1.PodResourceClaim) string {
	shared := r.shares(entry)
	c, fault := r.claim(entry, shared)
	switch {
	case fault != "" || c == nil:
		return fault
	case c.DeletionTimestamp != nil:
		return fmt.Sprintf("claim %s is being deleted", claimName(c))
	case c.Status.Allocation != nil:
		if s := c.Status.Allocation.NodeSelector; s != nil {
			r.found.Selectors = append(r.found.Selectors, s)
		}
	case slices.Contains(r.own, c): // two entries for one claim
	case (shared != nil || entry.ResourceClaimName != nil) && !slices.Contains(r.alone, c.UID):
		if !slices.Contains(r.found.Shared, c) {
			r.found.Shared = append(r.found.Shared, c)
		}
	default:
		r.own = append(r.own, c)
	}
	return ""
}

// shares returns the entry of the pod's group that this entry stands for, nil if it is the pod's own.
func (r *reader) shares(entry *corev1.PodResourceClaim) *schedulingv1beta1.PodGroupResourceClaim {
	if r.group == nil {
		return nil
	}
	to, err := resourceclaim.BindTo(r.pod, r.group, entry)
	if err != nil || to.Resource != "podgroups" {
		return nil
	}
	for i := range r.group.Spec.ResourceClaims {
		if r.group.Spec.ResourceClaims[i].Name == entry.Name {
			return &r.group.Spec.ResourceClaims[i]
		}
	}
	return nil
}

// claim finds the claim of an entry. Nil without a fault means that the entry needs none.
func (r *reader) claim(
	entry *corev1.PodResourceClaim, shared *schedulingv1beta1.PodGroupResourceClaim,
) (*resourcev1.ResourceClaim, string) {
	name, owned, err := resourceclaim.Name(r.pod, entry)
	owner := r.pod.Name
	if shared != nil {
		name, owned, err = resourceclaim.NameFromPodGroup(r.group, shared)
		owner = r.group.Name
	}
	if err != nil && entry.ResourceClaimTemplateName != nil {
		return r.unborn(entry, owner)
	}
	switch {
	case err != nil:
		return nil, fmt.Sprintf("claim %s of pod %s cannot be read: %v", entry.Name, r.pod.Name, err)
	case name == nil:
		return nil, ""
	}
	c := r.objects.Claim(r.pod.Namespace, *name)
	if c == nil {
		return nil, fmt.Sprintf("claim %s does not exist; pod %s refers to it as %s", *name, r.pod.Name, entry.Name)
	}
	if owned {
		err = resourceclaim.IsForPod(r.pod, c, shared != nil)
		if shared != nil {
			err = resourceclaim.IsForPodGroup(r.group, c)
		}
		if err != nil {
			return nil, err.Error()
		}
	}
	return c, ""
}

// unborn returns the claim that will be created from a template.
func (r *reader) unborn(entry *corev1.PodResourceClaim, owner string) (*resourcev1.ResourceClaim, string) {
	template := r.objects.Template(r.pod.Namespace, *entry.ResourceClaimTemplateName)
	if template == nil {
		return nil, fmt.Sprintf("claim template %s does not exist; pod %s refers to it as %s",
			*entry.ResourceClaimTemplateName, r.pod.Name, entry.Name)
	}
	c := &resourcev1.ResourceClaim{ObjectMeta: template.Spec.ObjectMeta, Spec: template.Spec.Spec}
	c.Namespace, c.Name = r.pod.Namespace, owner+"-"+entry.Name
	return c, ""
}
