package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkClaims refuses claims that the pods of a group would not share: claims whose fields the API server drops, which
// no pod names, or which a pod names with another meaning, so that it would get one of its own.
func (g *gang) checkClaims(members []member, options Options) field.ErrorList {
	var faults field.ErrorList
	if len(g.rules.ResourceClaims) > 0 && !options.KeepsClaims && !options.sharesByName() {
		return field.ErrorList{
			field.Forbidden(runtimePath(), "resourceClaims of its scheduling cannot be shared here: "+
				"the API server keeps none of a PodGroup's; switch its gate DRAWorkloadResourceClaims on"),
		}
	}
	for _, claim := range g.rules.ResourceClaims {
		if problems := validation.IsDNS1123Label(claim.Name); len(problems) > 0 {
			faults = append(faults, field.Invalid(runtimePath(), claim.Name,
				"name of a claim of its scheduling: "+strings.Join(problems, ", ")))
		}
		used := false
		for _, m := range members {
			i := slices.IndexFunc(m.template.Spec.ResourceClaims, func(own corev1.PodResourceClaim) bool {
				return own.Name == claim.Name
			})
			if i < 0 {
				continue
			}
			used = true
			if own := m.template.Spec.ResourceClaims[i]; !same(own.ResourceClaimName, claim.ResourceClaimName) ||
				!same(own.ResourceClaimTemplateName, claim.ResourceClaimTemplateName) {
				faults = append(faults, field.Invalid(runtimePath(), claim.Name, "replicated job "+m.name+
					" has a claim of that name which is another than its scheduling shares; they must be the same"))
			}
		}
		if !used {
			faults = append(
				faults,
				field.Invalid(runtimePath(), claim.Name, "its scheduling shares a claim that no pod of "+
					"the group names in its resourceClaims"),
			)
		}
	}
	return faults
}

func same(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// checkBasic refuses a place for the whole of a group whose pods start one by one: no scheduler would enforce it.
func (g *gang) checkBasic(members []member) field.ErrorList {
	var faults field.ErrorList
	if key := constraintOf(g.rules); key != "" {
		faults = append(faults, field.Invalid(runtimePath(), key,
			"schedulingConstraints of its scheduling need the policy gang"))
	}
	for _, m := range members {
		for _, line := range Annotations() {
			if value := m.template.Annotations[line.Key]; line.hard && value != "" {
				faults = append(faults, field.Invalid(runtimePath(), value, fmt.Sprintf(
					"annotation %s of replicated job %s needs the policy gang", line.Key, m.name)))
			}
		}
	}
	return faults
}

// checkStart refuses a gang with a member that waits until another is complete: they can never start together.
func (d *draft) checkStart(members []member) field.ErrorList {
	var faults field.ErrorList
	for _, m := range members {
		awaited := awaitedBy(d.spec, m.name)
		i := slices.IndexFunc(members, func(other member) bool { return awaited[other.name] == complete })
		if i >= 0 {
			faults = append(faults, field.Invalid(runtimePath(), m.name, "replicated job waits until "+members[i].name+
				" is complete, and its scheduling has both start together"))
		}
	}
	return faults
}
