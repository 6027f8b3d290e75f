package statusserver

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// fieldManager owns a TrainJob's trainerStatus and nothing else of it. It is upstream's, so that a cluster can change
// controllers.
const fieldManager = "trainer-status"

// apply replaces the job's trainerStatus and returns the job's new version. Fields that only an earlier report had are
// removed. It is a conflict if the job is not of the version that the report was compared with, or is another one of
// the same name.
//
// A merge patch costs the API server as much (BENCH.md), and would leave fields that Kubeflow Trainer could not remove:
// those of an updater stay when an applier of the same name drops them.
func (w write) apply(ctx context.Context, cluster client.Client) (version string, err error) {
	content, err := json.Marshal(w.status)
	if err != nil {
		return "", fmt.Errorf("printing the report of TrainJob %s: %w", w.key, err)
	}
	var fields map[string]any
	if err = json.Unmarshal(content, &fields); err != nil {
		return "", fmt.Errorf("printing the report of TrainJob %s: %w", w.key, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"trainerStatus": fields},
	}}
	object.SetGroupVersionKind(trainerv1alpha1.GroupVersion().WithKind(trainerv1alpha1.TrainJobKind))
	object.SetNamespace(w.key.Namespace)
	object.SetName(w.key.Name)
	object.SetResourceVersion(w.base)
	err = cluster.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return "", fmt.Errorf("writing the report of TrainJob %s: %w", w.key, err)
	}
	return object.GetResourceVersion(), nil
}
