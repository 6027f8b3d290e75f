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

// write replaces the job's trainerStatus. What an earlier report said and this one does not is gone.
func write(
	ctx context.Context, cluster client.Client, key client.ObjectKey, status *trainerv1alpha1.TrainerStatus,
) error {
	content, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("printing the report of TrainJob %s: %w", key, err)
	}
	var fields map[string]any
	if err = json.Unmarshal(content, &fields); err != nil {
		return fmt.Errorf("printing the report of TrainJob %s: %w", key, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"trainerStatus": fields},
	}}
	object.SetGroupVersionKind(trainerv1alpha1.GroupVersion().WithKind(trainerv1alpha1.TrainJobKind))
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	err = cluster.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("writing the report of TrainJob %s: %w", key, err)
	}
	return nil
}
