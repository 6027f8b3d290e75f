package rights

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// Right is one verb on one resource that a role gives an account.
type Right struct {
	// Role is kind and name.
	Role string
	// Account is a user or a group. A role that nothing binds is its users' own: it has an account of its name.
	Account string
	Verb    string
	// Resource is as in Request, or a path of the API server's.
	Resource string
	// Namespace limits it, and Name does; empty for none.
	Namespace, Name string
}

// String writes the right in one line.
func (r Right) String() string {
	text := r.Role + ": " + r.Verb + " " + r.Resource
	if r.Name != "" {
		text += " " + r.Name
	}
	return text
}

// uses reports whether a request needs this right or another one like it.
func (r Right) uses(request Request) bool {
	return r.Account == request.Account && r.Verb == request.Verb && r.Resource == request.Resource &&
		(r.Namespace == "" || r.Namespace == request.Namespace) && (r.Name == "" || r.Name == request.Name)
}

// Unused returns the rights that none of the requests needs. A request that a Role in a namespace allows needs no
// ClusterRole.
func Unused(allowed []Right, requests []Request) []Right {
	used := map[Right]bool{}
	for _, request := range requests {
		var narrow, wide []Right
		for _, right := range allowed {
			switch {
			case !right.uses(request):
			case right.Namespace != "":
				narrow = append(narrow, right)
			default:
				wide = append(wide, right)
			}
		}
		if len(narrow) == 0 {
			narrow = wide
		}
		for _, right := range narrow {
			used[right] = true
		}
	}
	var unused []Right
	for _, right := range allowed {
		if !used[right] {
			unused = append(unused, right)
		}
	}
	return unused
}

// Shipped returns every right that the roles of the chart give, with all that values can switch on.
func Shipped() ([]Right, error) {
	release := render.Default().With("takeOver", "kubeflow-system").With("dataCache.namespaces", []any{"default"}).
		With("serviceMonitor.enabled", true).With("neighbors.demand.mode", "gangs")
	rendered, err := render.Chart(release)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", err)
	}
	return Of(rendered.Objects)
}

// Of returns every right that the roles among some objects give, walking rules by verb, group, resource and name.
func Of(objects []*unstructured.Unstructured) ([]Right, error) {
	var rights []Right
	for _, object := range objects {
		if object.GetKind() != "Role" && object.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		bindings, err := bindingsOf(object, objects)
		if err != nil {
			return nil, err
		}
		for _, binding := range bindings {
			binding.Role = object.GetKind() + " " + object.GetName()
			for _, rule := range role.Rules {
				rights = append(rights, rightsOf(binding, rule)...)
			}
		}
	}
	return rights, nil
}

// bindingsOf returns, as rights without a rule, the accounts that have a role, each with its namespace.
func bindingsOf(role *unstructured.Unstructured, objects []*unstructured.Unstructured) ([]Right, error) {
	var found []Right
	for _, object := range objects {
		var binding rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
		if !strings.HasSuffix(object.GetKind(), "Binding") {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		elsewhere := role.GetNamespace() != "" && role.GetNamespace() != binding.Namespace
		if binding.RoleRef.Kind != role.GetKind() || binding.RoleRef.Name != role.GetName() || elsewhere {
			continue
		}
		for _, subject := range binding.Subjects {
			account := subject.Name
			if subject.Kind == rbacv1.ServiceAccountKind {
				account = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
			}
			found = append(found, Right{Account: account, Namespace: binding.Namespace})
		}
	}
	if len(found) == 0 {
		found = []Right{{Account: role.GetName(), Namespace: role.GetNamespace()}}
	}
	return found, nil
}

// rightsOf multiplies a rule out.
func rightsOf(binding Right, rule rbacv1.PolicyRule) []Right {
	resources := rule.NonResourceURLs
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resources = append(resources, group+"/"+resource)
		}
	}
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var rights []Right
	for _, resource := range resources {
		for _, verb := range rule.Verbs {
			for _, name := range names {
				right := binding
				right.Verb, right.Resource, right.Name = verb, resource, name
				rights = append(rights, right)
			}
		}
	}
	return rights
}
