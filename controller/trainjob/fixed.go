package trainjob

import jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

// withFixed returns the planned JobSet with the volume claims of the one that is there, which cannot change any more.
// JobSet's webhook gives them a retention policy when a JobSet is created, and never again: to apply them as planned
// would be a change, and refused, and a job that was created suspended could not resume.
func withFixed(planned, there *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSet {
	if there == nil || planned.Spec.VolumeClaimPolicies == nil {
		return planned
	}
	fixed := planned.DeepCopy()
	fixed.Spec.VolumeClaimPolicies = there.Spec.VolumeClaimPolicies
	return fixed
}

// dropEmptyMetadata removes empty metadata from an applied object. Applying {} over labels and annotations makes the
// field null, which is refused: a job with a pod template whose only labels were Kueue's could not be applied after
// these were removed.
func dropEmptyMetadata(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			dropEmptyMetadata(inner)
			if fields, isObject := inner.(map[string]any); isObject && key == "metadata" && len(fields) == 0 {
				delete(value, key)
			}
		}
	case []any:
		for _, inner := range value {
			dropEmptyMetadata(inner)
		}
	}
}
