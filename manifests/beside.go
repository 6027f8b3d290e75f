package manifests

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// managedBy is what TrainJobs that are Lockstep's have in their field of that name.
const managedBy = "lockstep.dev/trainjob-controller"

// beside reports whether Kubeflow Trainer keeps the TrainJobs that are not chosen.
func (i Installation) beside() bool { return slices.Contains(i.Flags, "--manage=chosen") }

// askAboutChosen has the webhooks asked about TrainJobs that Lockstep manages, so that those of Kubeflow Trainer go on while Lockstep is away.
// The defaulter is also asked about all that are new, for it chooses among them. Who manages a job cannot change.
func (i Installation) askAboutChosen(configuration *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return nil, fmt.Errorf("reading the webhooks: %w", err)
	}
	const ours = "has(%[1]s.spec.managedBy) && %[1]s.spec.managedBy == '" + managedBy + "'"
	conditions := map[string]string{
		"defaulter.trainjob.": "request.operation == 'CREATE' || " + fmt.Sprintf(ours, "oldObject"),
		"validator.trainjob.": fmt.Sprintf(ours, "object"),
	}
	for _, entry := range webhooks {
		webhook, _ := entry.(map[string]any)
		name, _ := webhook["name"].(string)
		for prefix, expression := range conditions {
			if strings.HasPrefix(name, prefix) {
				webhook["matchConditions"] = []any{map[string]any{"name": "chosen", "expression": expression}}
			}
		}
	}
	if err := unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks"); err != nil {
		return nil, fmt.Errorf("writing the webhooks: %w", err)
	}
	if len(i.Namespaces) == 0 {
		return []*unstructured.Unstructured{configuration}, nil
	}
	return i.narrowWebhooks(configuration)
}
