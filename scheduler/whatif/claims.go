package whatif

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Devices are published by drivers, and claimed by pods.
type Devices struct {
	Slices  []*resourcev1.ResourceSlice
	Classes []*resourcev1.DeviceClass
	Claims  []*resourcev1.ResourceClaim
	// Templates are those of claims that do not exist yet.
	Templates []*resourcev1.ResourceClaimTemplate
}

// and is both.
func (d Devices) and(more Devices) Devices {
	return Devices{
		Slices:    slices.Concat(d.Slices, more.Slices),
		Classes:   slices.Concat(d.Classes, more.Classes),
		Claims:    slices.Concat(d.Claims, more.Claims),
		Templates: slices.Concat(d.Templates, more.Templates),
	}
}

// claimed are the objects when the controller of claims has done its work: pods and PodGroups that name claim templates
// have their claims. A claim whose template does not exist is not created; the verdict about its gang says so.
func (o Objects) claimed() Objects {
	m := maker{
		templates: make(map[types.NamespacedName]*resourcev1.ResourceClaimTemplate, len(o.Devices.Templates)),
		groups:    make(map[types.NamespacedName]*schedulingv1beta1.PodGroup, len(o.PodGroups)),
	}
	for _, template := range o.Devices.Templates {
		m.templates[types.NamespacedName{Namespace: template.Namespace, Name: template.Name}] = template
	}
	o.PodGroups = slices.Clone(o.PodGroups)
	for i, group := range o.PodGroups {
		o.PodGroups[i] = m.group(group)
		m.groups[types.NamespacedName{Namespace: group.Namespace, Name: group.Name}] = o.PodGroups[i]
	}
	o.Pods = slices.Clone(o.Pods)
	for i, pod := range o.Pods {
		o.Pods[i] = m.pod(pod)
	}
	o.Devices.Claims = slices.Concat(o.Devices.Claims, m.made)
	return o
}

// maker makes claims of templates.
type maker struct {
	templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
	groups    map[types.NamespacedName]*schedulingv1beta1.PodGroup
	made      []*resourcev1.ResourceClaim
}

// group makes the claims that a PodGroup lacks, and returns the resulting PodGroup.
func (m *maker) group(group *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroup {
	for i := range group.Spec.ResourceClaims {
		entry := &group.Spec.ResourceClaims[i]
		if _, _, err := resourceclaim.NameFromPodGroup(group, entry); err == nil {
			continue
		}
		name := m.claim(entry.ResourceClaimTemplateName, entry.Name, &group.ObjectMeta, metav1.OwnerReference{
			APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "PodGroup",
		})
		if name == nil {
			continue
		}
		group = group.DeepCopy()
		group.Status.ResourceClaimStatuses = append(group.Status.ResourceClaimStatuses,
			schedulingv1beta1.PodGroupResourceClaimStatus{Name: entry.Name, ResourceClaimName: name})
	}
	return group
}

// pod makes the claims that a pod lacks, except for those of its PodGroup, and returns the resulting pod.
func (m *maker) pod(pod *corev1.Pod) *corev1.Pod {
	key, _ := snapshot.GroupOf(pod)
	group := m.groups[key]
	for i := range pod.Spec.ResourceClaims {
		entry := &pod.Spec.ResourceClaims[i]
		if _, _, err := resourceclaim.Name(pod, entry); err == nil {
			continue
		}
		if to, err := resourceclaim.BindTo(pod, group, entry); err != nil || to.Resource == "podgroups" {
			continue
		}
		name := m.claim(entry.ResourceClaimTemplateName, entry.Name, &pod.ObjectMeta, metav1.OwnerReference{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod",
		})
		if name == nil {
			continue
		}
		there := *pod
		there.Status.ResourceClaimStatuses = append(slices.Clone(pod.Status.ResourceClaimStatuses),
			corev1.PodResourceClaimStatus{Name: entry.Name, ResourceClaimName: name})
		pod = &there
	}
	return pod
}

// claim makes a claim and returns its name, which really ends in random letters; nil if there is no such template.
func (m *maker) claim(template *string, entry string, owner *metav1.ObjectMeta, of metav1.OwnerReference) *string {
	if template == nil {
		return nil
	}
	from := m.templates[types.NamespacedName{Namespace: owner.Namespace, Name: *template}]
	if from == nil {
		return nil
	}
	of.Name, of.UID, of.Controller = owner.Name, owner.UID, new(true)
	claim := &resourcev1.ResourceClaim{ObjectMeta: *from.Spec.ObjectMeta.DeepCopy(), Spec: *from.Spec.Spec.DeepCopy()}
	claim.Namespace, claim.Name = owner.Namespace, owner.Name+"-"+entry
	claim.UID, claim.OwnerReferences = types.UID(claim.Namespace+"/"+claim.Name), []metav1.OwnerReference{of}
	m.made = append(m.made, claim)
	return &claim.Name
}
