package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

// checkSwitchesChange refuses to switch the gang or NVLink on or off, or to choose another scheduler, once there is a
// JobSet: the decisions of its first rendering are final, and some of them show in its requests.
func (v *Validator) checkSwitchesChange(ctx context.Context, old, next *trainerv1alpha1.TrainJob) field.ErrorList {
	var changed []string
	for _, key := range []string{topology.AnnotationGang, topology.AnnotationScheduler, topology.AnnotationMNNVL} {
		if old.Annotations[key] != next.Annotations[key] {
			changed = append(changed, key)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	at := field.NewPath("metadata", "annotations")
	var jobSet jobsetv1alpha2.JobSet
	switch err := v.JobSets.Get(ctx, client.ObjectKeyFromObject(next), &jobSet); {
	case client.IgnoreNotFound(err) != nil:
		return field.ErrorList{field.InternalError(at, fmt.Errorf("getting JobSet %s: %w", next.Name, err))}
	case err != nil:
		return nil
	}
	var faults field.ErrorList
	for _, key := range changed {
		faults = append(faults, field.Invalid(at.Key(key), next.Annotations[key],
			"cannot change any more, because the job has a JobSet; create the job again"))
	}
	return faults
}
