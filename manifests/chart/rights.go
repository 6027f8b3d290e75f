package chart

import (
	"embed"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

//go:embed rights
var rights embed.FS

// Watched returns the resources that the controller caches in the namespaces of TrainJobs, in the order of the files:
// its role lets it list them. Gangs are in api; empty means that they may be in either.
func Watched(api gangapi.API) ([]schema.GroupResource, error) {
	files := []string{"rights/namespaced.yaml"}
	for _, of := range []struct {
		api  gangapi.API
		file string
	}{{gangapi.Native, "rights/gangs-native.yaml"}, {gangapi.Resources, "rights/gangs-resources.yaml"}} {
		if api == "" || api == of.api {
			files = append(files, of.file)
		}
	}
	var found []schema.GroupResource
	for _, file := range files {
		content, err := rights.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		var rules []rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict(content, &rules); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", file, err)
		}
		found = append(found, listed(rules)...)
	}
	return found, nil
}

// listed are the resources that rules let list.
func listed(rules []rbacv1.PolicyRule) []schema.GroupResource {
	var found []schema.GroupResource
	for _, rule := range rules {
		if !slices.Contains(rule.Verbs, "list") {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				found = append(found, schema.GroupResource{Group: group, Resource: resource})
			}
		}
	}
	return found
}
