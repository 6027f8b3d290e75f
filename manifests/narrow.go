package manifests

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// ControllerRole is the ClusterRole, and its binding, with which the controller works.
const ControllerRole = "lockstep-controller"

// takeOverRole is the Role, and its binding, for the lease of Kubeflow Trainer, in whose namespace they are.
const takeOverRole = "lockstep-controller-take-over"

// ClusterScoped lists the resources of the controller's role that have no namespace, as group/resource. The last is virtual: a policy
// asks for it in the whole cluster.
func ClusterScoped() []string {
	return []string{
		"trainer.kubeflow.org/clustertrainingruntimes",
		"/namespaces",
		"/nodes",
		"scheduling.k8s.io/priorityclasses",
		"resource.k8s.io/deviceclasses",
		"authentication.k8s.io/tokenreviews",
		"authorization.k8s.io/subjectaccessreviews",
		"admissionregistration.k8s.io/mutatingwebhookconfigurations",
		"admissionregistration.k8s.io/validatingwebhookconfigurations",
		"lockstep.dev/runtimesnapshots",
	}
}

// adapt gives the Deployment of a stream of YAML its flags, and limits the documents to the installation's namespaces if it has any. Those that
// need no change stay as they are written.
func (i Installation) adapt(content string) ([]byte, error) {
	var out []string
	for document := range strings.SplitSeq(content, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("parsing a manifest: %w", err)
		}
		narrowed, err := i.adaptObject(&object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if narrowed == nil {
			out = append(out, strings.TrimRight(document, "\n"))
			continue
		}
		for _, made := range narrowed {
			text, err := yaml.Marshal(made.Object)
			if err != nil {
				return nil, fmt.Errorf("printing %s %s: %w", made.GetKind(), made.GetName(), err)
			}
			out = append(out, strings.TrimRight(string(text), "\n"))
		}
	}
	return []byte(strings.Join(out, "\n---\n") + "\n"), nil
}

// adaptObject returns the objects that take the place of one; nil if it stays as it is.
func (i Installation) adaptObject(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	changed, err := i.withoutOther(object)
	if err != nil || changed != nil && len(changed) == 0 {
		return changed, err
	}
	made, err := i.narrow(object)
	if made == nil {
		made = changed
	}
	return made, err
}

// narrow returns the objects that take the place of one because of the installation's namespaces and flags; nil if it stays as it is.
func (i Installation) narrow(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	switch kind := object.GetKind(); {
	case kind == "Deployment":
		return i.adaptDeployment(object)
	case object.GetName() == takeOverRole && i.TakeOver != "":
		object.SetNamespace(i.TakeOver)
		return []*unstructured.Unstructured{object}, nil
	case strings.HasSuffix(kind, "WebhookConfiguration") && i.beside():
		return i.askAboutChosen(object)
	case len(i.Namespaces) == 0:
		return nil, nil
	case kind == "ClusterRole" && object.GetName() == ControllerRole:
		return i.narrowRole(object)
	case kind == "ClusterRoleBinding" && object.GetName() == ControllerRole:
		return i.narrowBinding(object), nil
	case kind == "MutatingWebhookConfiguration", kind == "ValidatingWebhookConfiguration":
		return i.narrowWebhooks(object)
	default:
		return nil, nil
	}
}

// narrowRole leaves in the ClusterRole what is about the whole cluster, and makes a Role of the rest for each namespace.
func (i Installation) narrowRole(role *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	rules, _, err := unstructured.NestedSlice(role.Object, "rules")
	if err != nil {
		return nil, fmt.Errorf("reading the rules: %w", err)
	}
	var wide, narrow []any
	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		cluster, namespaced, err := scopes(fields)
		switch {
		case err != nil:
			return nil, err
		case cluster && namespaced:
			return nil, fmt.Errorf("a rule has resources with and without namespaces: %v", fields["resources"])
		case cluster:
			wide = append(wide, rule)
		default:
			narrow = append(narrow, rule)
		}
	}
	role.Object["rules"] = wide
	made := []*unstructured.Unstructured{role}
	for _, namespace := range i.Namespaces {
		made = append(made, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": role.GetAPIVersion(), "kind": "Role",
			"metadata": map[string]any{"name": role.GetName(), "namespace": namespace},
			"rules":    narrow,
		}})
	}
	return made, nil
}

// scopes reports whether a rule has resources without and with namespaces.
func scopes(rule map[string]any) (cluster, namespaced bool, err error) {
	groups, _, err := unstructured.NestedStringSlice(rule, "apiGroups")
	if err != nil {
		return false, false, fmt.Errorf("reading apiGroups: %w", err)
	}
	resources, _, err := unstructured.NestedStringSlice(rule, "resources")
	if err != nil {
		return false, false, fmt.Errorf("reading resources: %w", err)
	}
	for _, group := range groups {
		for _, resource := range resources {
			if slices.Contains(ClusterScoped(), group+"/"+base(resource)) {
				cluster = true
			} else {
				namespaced = true
			}
		}
	}
	return cluster, namespaced, nil
}

// base is a resource without its subresource.
func base(resource string) string {
	name, _, _ := strings.Cut(resource, "/")
	return name
}

// narrowBinding adds a RoleBinding in each namespace, for the same account.
func (i Installation) narrowBinding(binding *unstructured.Unstructured) []*unstructured.Unstructured {
	made := []*unstructured.Unstructured{binding}
	for _, namespace := range i.Namespaces {
		made = append(made, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": binding.GetAPIVersion(), "kind": "RoleBinding",
			"metadata": map[string]any{"name": binding.GetName(), "namespace": namespace},
			"roleRef": map[string]any{
				"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ControllerRole,
			},
			"subjects": binding.Object["subjects"],
		}})
	}
	return made
}

// narrowWebhooks has the webhooks asked about objects of the namespaces only. One about objects without a namespace would be asked for
// the whole cluster, so it is left out: what it would judge is judged again when a job is planned.
func (i Installation) narrowWebhooks(configuration *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return nil, fmt.Errorf("reading the webhooks: %w", err)
	}
	var kept, names []any
	for _, namespace := range i.Namespaces {
		names = append(names, namespace)
	}
	for _, entry := range webhooks {
		webhook, _ := entry.(map[string]any)
		rules, _, err := unstructured.NestedSlice(webhook, "rules")
		if err != nil {
			return nil, fmt.Errorf("reading the rules of %v: %w", webhook["name"], err)
		}
		wide := slices.ContainsFunc(rules, func(rule any) bool {
			fields, _ := rule.(map[string]any)
			cluster, _, _ := scopes(fields)
			return cluster
		})
		if wide {
			continue
		}
		webhook["namespaceSelector"] = map[string]any{"matchExpressions": []any{
			map[string]any{"key": "kubernetes.io/metadata.name", "operator": "In", "values": names},
		}}
		kept = append(kept, webhook)
	}
	configuration.Object["webhooks"] = kept
	return []*unstructured.Unstructured{configuration}, nil
}

// adaptDeployment gives the controller its flags.
func (i Installation) adaptDeployment(deployment *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil {
		return nil, fmt.Errorf("reading the containers: %w", err)
	}
	if len(containers) != 1 {
		return nil, fmt.Errorf("it has %d containers, and one gets the flags", len(containers))
	}
	first, _ := containers[0].(map[string]any)
	arguments, _, err := unstructured.NestedSlice(first, "args")
	if err != nil {
		return nil, fmt.Errorf("reading the arguments: %w", err)
	}
	for _, argument := range i.arguments() {
		arguments = append(arguments, argument)
	}
	first["args"] = arguments
	if err := unstructured.SetNestedSlice(deployment.Object, containers, path...); err != nil {
		return nil, fmt.Errorf("writing the containers: %w", err)
	}
	return []*unstructured.Unstructured{deployment}, nil
}
