package cluster

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The files of Kueue's manifests beside its binary.
const (
	kueueCRDs     = "crds.yaml"
	kueueRoles    = "roles.yaml"
	kueueWebhooks = "webhooks.yaml"
)

// asKueueDeploys reads manifests of Kueue's components and returns the objects as its own deployment has them: with
// Kueue's prefix in their names, in its namespace, and with CRDs that Kueue converts. Calls to Kueue's webhooks have
// the address base, on loopback; managed are the API groups of the kinds that it manages.
func asKueueDeploys(
	content []byte,
	base string,
	authority []byte,
	managed []string,
) ([]*unstructured.Unstructured, error) {
	var deployed []*unstructured.Unstructured
	err := eachObject(content, func(object *unstructured.Unstructured) error {
		deployed = append(deployed, object)
		switch object.GetKind() {
		case "CustomResourceDefinition":
			return convertAt(object, base, authority)
		case "ClusterRole", "Role":
			if err := nameConfigurations(object); err != nil {
				return err
			}
		case "ClusterRoleBinding", "RoleBinding":
			if err := nameBound(object); err != nil {
				return err
			}
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			if err := callAt(object, base, authority, managed); err != nil {
				return err
			}
		}
		object.SetName(kueueName(object.GetName()))
		if object.GetNamespace() != "" {
			object.SetNamespace(kueueNamespace)
		}
		return nil
	})
	return deployed, err
}

func kueueName(name string) string { return "kueue-" + name }

// convertAt has a CRD converted by Kueue, if it is one of those that Kueue converts; for the others all versions are
// alike.
func convertAt(crd *unstructured.Unstructured, base string, authority []byte) error {
	converted := []string{
		"clusterqueues.kueue.x-k8s.io", "cohorts.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io",
		"multikueueclusters.kueue.x-k8s.io", "workloads.kueue.x-k8s.io",
	}
	if !slices.Contains(converted, crd.GetName()) {
		return nil
	}
	conversion := map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig":             clientConfig(base+"/convert", authority),
			"conversionReviewVersions": []any{"v1"},
		},
	}
	if err := unstructured.SetNestedField(crd.Object, conversion, "spec", "conversion"); err != nil {
		return fmt.Errorf("writing the conversion of %s: %w", crd.GetName(), err)
	}
	return nil
}

// nameConfigurations gives the webhook configurations that a role names the names that they are deployed with.
func nameConfigurations(role *unstructured.Unstructured) error {
	rules, _, err := unstructured.NestedSlice(role.Object, "rules")
	if err != nil {
		return fmt.Errorf("reading %s: %w", role.GetName(), err)
	}
	for _, entry := range rules {
		rule, _ := entry.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		names, named, _ := unstructured.NestedStringSlice(rule, "resourceNames")
		if !named || !slices.Contains(groups, "admissionregistration.k8s.io") {
			continue
		}
		for i := range names {
			names[i] = kueueName(names[i])
		}
		if err := unstructured.SetNestedStringSlice(rule, names, "resourceNames"); err != nil {
			return fmt.Errorf("writing %s: %w", role.GetName(), err)
		}
	}
	if err := unstructured.SetNestedSlice(role.Object, rules, "rules"); err != nil {
		return fmt.Errorf("writing %s: %w", role.GetName(), err)
	}
	return nil
}

// nameBound gives the role and the accounts of a binding the names that they are deployed with.
func nameBound(binding *unstructured.Unstructured) error {
	role, _, err := unstructured.NestedString(binding.Object, "roleRef", "name")
	if err != nil {
		return fmt.Errorf("reading %s: %w", binding.GetName(), err)
	}
	subjects, _, err := unstructured.NestedSlice(binding.Object, "subjects")
	if err != nil {
		return fmt.Errorf("reading %s: %w", binding.GetName(), err)
	}
	for _, entry := range subjects {
		subject, ok := entry.(map[string]any)
		name, isText := subject["name"].(string)
		if !ok || !isText {
			return fmt.Errorf("reading %s: a subject has no name", binding.GetName())
		}
		subject["name"], subject["namespace"] = kueueName(name), kueueNamespace
	}
	if err := unstructured.SetNestedField(binding.Object, kueueName(role), "roleRef", "name"); err != nil {
		return fmt.Errorf("writing %s: %w", binding.GetName(), err)
	}
	if err := unstructured.SetNestedSlice(binding.Object, subjects, "subjects"); err != nil {
		return fmt.Errorf("writing %s: %w", binding.GetName(), err)
	}
	return nil
}

// callAt has webhooks called at base. Those about kinds that Kueue is not asked to manage are left out: they would only
// be in the way of every pod.
func callAt(configuration *unstructured.Unstructured, base string, authority []byte, managed []string) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("reading %s: %w", configuration.GetName(), err)
	}
	webhooks = slices.DeleteFunc(webhooks, func(webhook any) bool {
		fields, _ := webhook.(map[string]any)
		rules, _, _ := unstructured.NestedSlice(fields, "rules")
		return !slices.ContainsFunc(rules, func(rule any) bool {
			fields, _ := rule.(map[string]any)
			groups, _, _ := unstructured.NestedStringSlice(fields, "apiGroups")
			return slices.ContainsFunc(groups, func(group string) bool { return slices.Contains(managed, group) })
		})
	})
	if err := unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks"); err != nil {
		return fmt.Errorf("writing %s: %w", configuration.GetName(), err)
	}
	return moveToLoopback(configuration, base, authority)
}
