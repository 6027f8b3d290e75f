package statusserver

import (
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// The bounds of the CRD. A test holds them against it.
const (
	mostMetrics = 256
	longestText = 64
)

// Validate returns the CRD's refusal of a report, in the API server's form; nil for a valid report. A report is
// answered before it is written, so that this is the last moment to refuse it.
func Validate(job string, status *trainerv1alpha1.TrainerStatus) error {
	path := field.NewPath("status", "trainerStatus")
	var faults field.ErrorList
	if percent := status.ProgressPercentage; percent != nil && (*percent < 0 || *percent > complete) {
		faults = append(faults, field.Invalid(path.Child("progressPercentage"), *percent, "must be from 0 to 100"))
	}
	if seconds := status.EstimatedRemainingSeconds; seconds != nil && *seconds < 0 {
		faults = append(faults, field.Invalid(path.Child("estimatedRemainingSeconds"), *seconds, "must be 0 or more"))
	}
	if status.LastUpdatedTime.IsZero() {
		faults = append(faults, field.Required(path.Child("lastUpdatedTime"), "a report says when it was so"))
	}
	if count := len(status.Metrics); count > mostMetrics {
		faults = append(faults, field.TooMany(path.Child("metrics"), count, mostMetrics))
	} else {
		for i, metric := range status.Metrics {
			at := path.Child("metrics").Index(i)
			faults = append(faults, validateText(at.Child("name"), metric.Name)...)
			faults = append(faults, validateText(at.Child("value"), metric.Value)...)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	kind := trainerv1alpha1.GroupVersion().WithKind(trainerv1alpha1.TrainJobKind).GroupKind()
	return apierrors.NewInvalid(kind, job, faults) //nolint:wrapcheck // its text is the answer
}

func validateText(path *field.Path, text string) field.ErrorList {
	switch length := utf8.RuneCountInString(text); {
	case length == 0:
		return field.ErrorList{field.Required(path, "must have 1 to 64 characters")}
	case length > longestText:
		return field.ErrorList{field.TooLongMaxLength(path, text, longestText)}
	default:
		return nil
	}
}
