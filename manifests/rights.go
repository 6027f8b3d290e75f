package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// Watched lists the namespaced resources that the controller's role lets it list: those of which it keeps a cache where gangs are in an API, in
// the order of the file.
func Watched(api gangapi.API) ([]schema.GroupResource, error) {
	const file = "controller/rbac.yaml"
	content, err := Files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		var role rbacv1.ClusterRole
		err := decoder.Decode(&role)
		switch {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%s has no ClusterRole %s", file, ControllerRole)
		case err != nil:
			return nil, fmt.Errorf("parsing %s: %w", file, err)
		case role.Kind == "ClusterRole" && role.Name == ControllerRole:
			return watched(role.Rules, api), nil
		}
	}
}

func watched(rules []rbacv1.PolicyRule, api gangapi.API) []schema.GroupResource {
	var found []schema.GroupResource
	for _, rule := range rules {
		if !slices.Contains(rule.Verbs, "list") {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if !slices.Contains(ClusterScoped(), group+"/"+resource) && !unused(api, group, resource) {
					found = append(found, schema.GroupResource{Group: group, Resource: resource})
				}
			}
		}
	}
	return found
}
