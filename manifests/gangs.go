package manifests

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// gangResources are what the APIs of gangs have, as group/resource; subresources are like their resource.
func gangResources(api gangapi.API) []string {
	if api == gangapi.Resources {
		return []string{gangapi.Group + "/" + gangapi.Plural}
	}
	group := gangapi.Native.Version().Group
	return []string{group + "/" + gangapi.Plural, group + "/workloads"}
}

// unused reports whether nobody asks for a resource where gangs are in an API; where it is not known which, both are used.
func unused(api gangapi.API, group, resource string) bool {
	other := gangapi.Native
	if api == gangapi.Native {
		other = gangapi.Resources
	}
	return api != "" && slices.Contains(gangResources(other), group+"/"+base(resource))
}

// withoutOther returns a role without its rules for the other API of gangs, nothing for the CRD of the other, and nil if the object stays as it
// is.
func (i Installation) withoutOther(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	switch object.GetKind() {
	case "CustomResourceDefinition":
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		if unused(i.GangAPI, group, plural) {
			return []*unstructured.Unstructured{}, nil
		}
	case "ClusterRole", "Role":
		rules, _, err := unstructured.NestedSlice(object.Object, "rules")
		if err != nil {
			return nil, fmt.Errorf("reading the rules: %w", err)
		}
		kept := slices.DeleteFunc(slices.Clone(rules), func(rule any) bool {
			fields, _ := rule.(map[string]any)
			return i.forOther(fields)
		})
		if len(kept) < len(rules) {
			object.Object["rules"] = kept
			return []*unstructured.Unstructured{object}, nil
		}
	}
	return nil, nil
}

// forOther reports whether a rule is for the other API of gangs only.
func (i Installation) forOther(rule map[string]any) bool {
	groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
	resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
	for _, group := range groups {
		for _, resource := range resources {
			if !unused(i.GangAPI, group, resource) {
				return false
			}
		}
	}
	return len(groups) > 0
}
